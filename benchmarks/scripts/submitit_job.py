"""A function on N nodes by submitit: `python submitit_job.py FOLDER NODES`; prints when each task began."""

import json
import sys
import time

import submitit


def main() -> float:
    return time.time()


if __name__ == "__main__":
    called = time.time()
    executor = submitit.SlurmExecutor(folder=sys.argv[1])
    executor.update_parameters(nodes=int(sys.argv[2]), ntasks_per_node=1, time=10)
    began = executor.submit(main).results()
    print(json.dumps({"called": called, "began": max(began), "returned": time.time()}))
