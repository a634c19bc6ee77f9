"""Says which GPUs and CPUs this host has."""

import json
import os
import re
from pathlib import Path

devices = [each for each in Path("/dev").iterdir() if re.fullmatch(r"nvidia\d+", each.name)]
visible, cpus = os.environ.get("CUDA_VISIBLE_DEVICES", ""), sorted(os.sched_getaffinity(0))
print(json.dumps({"visible": visible, "cpus": cpus, "devices": len(devices)}))
