"""Says when it has begun, and ends."""

import sys
import time

sys.stdout.write(f"main {time.time()}\n")  # at once, for what a launcher passes on in pieces it may mix up
sys.stdout.flush()
