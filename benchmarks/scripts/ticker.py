"""Writes the time, in seconds since 1970, a hundred times a second: `ticker.py --lines N`."""

import argparse
import os
import time

parser = argparse.ArgumentParser()
parser.add_argument("--lines", type=int, required=True)
lines = parser.parse_args().lines
for _ in range(lines):
    time.sleep(0.01)
    os.write(1, b"tick %.6f\n" % time.time())
