"""Writes numbered lines as fast as it can, from a moment on which all ranks agree: `writer.py --lines N --each B`.

`--each 1` writes every line at once; else as many as a buffer holds, as Python does when its output is a pipe.
"""

import argparse
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lines", type=int, required=True)
parser.add_argument("--each", type=int, required=True)
settings = parser.parse_args()

# The same buffer whatever `-u` says to the interpreter.
out = open(1, "wb", buffering=8192, closefd=False)  # noqa: SIM115 - it lives as long as the program
filler = b"x" * 64
if "OMPI_COMM_WORLD_RANK" in os.environ:
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
    MPI.COMM_WORLD.Barrier()
else:
    rank = int(os.environ["WRITER"])
    sys.stdin.read()
out.write(b"begin %.6f\n" % time.time())
out.flush()
for number in range(settings.lines):
    out.write(b"%d %d %b %d\n" % (rank, number, filler, number))
    if settings.each == 1:
        out.flush()
out.flush()
