"""What jobs on the cluster of containers do, and what a user runs who follows one."""

WORKS = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
found = sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit())
print("up at", found[-1] if found else 0, flush=True)
if found:
    sys.exit()
for step in range(1, {seconds} * 10 + 1):
    if os.environ.get("RANK", "0") == "0" and os.environ["SM_CURRENT_HOST"] == "algo-1":
        (folder / "new").write_text("x")
        (folder / "new").rename(folder / str(step))
    time.sleep(0.1)
"""
FILLS = """
import os, pathlib, time
print("up at 0", flush=True)
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
for step in range(2000):
    if "{what}" == "lines":
        print("x" * 1000000, flush=True)
    else:
        (folder / str(step)).write_bytes(os.urandom(1000000))
    time.sleep(0.1)
"""
FOLLOWS = """
import pathlib
from estimator_sdk import Estimator
folder = pathlib.Path.home() / {name!r}
folder.mkdir()
(folder / "train.py").write_text({source!r})
Estimator(entry_point=str(folder / "train.py"), {arguments}).fit(job_name={name!r})
"""
