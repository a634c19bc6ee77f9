"""Ten scenes that were written before the code of the doctor had been read. They stay as they are while it is tuned."""

from __future__ import annotations

from benchmarks.scenes.scene import Cause, Scene

BLIND = (
    Scene("decode sleeps", "reads.py", Cause.DECODE, computing_ms=40, cause_ms=20),
    Scene("decode sleeps for most of a step", "reads.py", Cause.DECODE, computing_ms=12, cause_ms=48),
    Scene("DataLoader decodes in the script's process", "loads.py", Cause.DECODE, computing_ms=30, cause_ms=30),
    Scene("a store sends slowly", "reads.py", Cause.STORE, computing_ms=30, cause_ms=30),
    Scene("a batch is many small files", "reads.py", Cause.FILES, computing_ms=35, cause_ms=15),
    Scene("the second of two ranks is slow", "together.py", Cause.SLOW_RANK, computing_ms=30, cause_ms=20, ranks=2),
    Scene("four busy processes beside the rank", "crowded.py", Cause.CPUS, computing_ms=20, others=4),
    Scene("every fifth step saves to a slow disk", "saves.py", Cause.CHECKPOINT, computing_ms=40, cause_ms=20),
    Scene("gradients are summed slowly", "together.py", Cause.ALLREDUCE, computing_ms=30, cause_ms=30, ranks=2),
    Scene("workers of DataLoader are fast enough", "loads.py", Cause.NONE, computing_ms=40, cause_ms=10, workers=1),
)
