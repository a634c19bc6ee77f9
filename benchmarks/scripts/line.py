"""Says when it has begun, and ends."""

import time

print("main", time.time(), flush=True)
