"""A hello world that says when its first line runs, when it is in the world, and when it ends: seconds since 1970."""

import os
import time

first = time.time()
from mpi4py import MPI  # noqa: E402 - after the clock is read

os.write(1, f"hello from rank {MPI.COMM_WORLD.rank}: main {first:.6f} world {time.time():.6f}\n".encode())
MPI.Finalize()
os.write(1, f"end {time.time():.6f}\n".encode())
