"""Prints when allreduces of 1 KiB began and ended and how many they were: half a second's, or `--calls N`."""

import argparse
import os
import time
from array import array

from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--calls", type=int, default=0)
settings = parser.parse_args()

world = MPI.COMM_WORLD
send = array("d", [1.0] * 128)
receive = array("d", send)

for _ in range(20):
    world.Allreduce(send, receive)
at_once = settings.calls or 20
began, count, over = time.time(), 0, False
while not over:
    for _ in range(at_once):
        world.Allreduce(send, receive)
    count += at_once
    over = settings.calls > 0 or world.bcast(time.time() - began > 0.5)
if world.rank == 0:
    os.write(1, f"allreduce {began:.6f} {time.time():.6f} {count}\n".encode())
