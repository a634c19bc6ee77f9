"""Writes numbered lines as fast as it can, from a moment on which all ranks agree: `writer.py --lines N --each B`.

`--each 1` writes every line at once; else as many as a buffer holds, as Python does when its output is a pipe. The
lines are made before, for it is the way of lines that is timed, and not their making.
"""

import argparse
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lines", type=int, required=True)
parser.add_argument("--each", type=int, required=True)
settings = parser.parse_args()

SOON = 1.0  # seconds; 64 ranks on two CPUs take a third of that to leave a barrier
BUFFER = 8192  # bytes, as Python's for an output that is a pipe
filler = b"x" * 64
if "OMPI_COMM_WORLD_RANK" in os.environ:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
else:
    MPI = None
    rank = int(os.environ["WRITER"])
lines = [b"%d %d %b %d\n" % (rank, number, filler, number) for number in range(settings.lines)]
if settings.each == 0:
    text = b"".join(lines)
    lines = [text[at : at + BUFFER] for at in range(0, len(text), BUFFER)]
if MPI is not None:
    MPI.COMM_WORLD.Barrier()
    moment = MPI.COMM_WORLD.bcast(time.time() + SOON)
    time.sleep(max(0.0, moment - time.time()))
else:
    sys.stdin.read()
os.write(1, b"begin %.6f\n" % time.time())
for each in lines:
    rest = each
    while rest:
        rest = rest[os.write(1, rest) :]
