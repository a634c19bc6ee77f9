"""The scenes that came later: the same causes with other shares, and four jobs more that nothing makes slow."""

from __future__ import annotations

from benchmarks.scenes.scene import Cause, Scene

MORE = (
    Scene("decode sleeps a little", "reads.py", Cause.DECODE, computing_ms=45, cause_ms=5),
    Scene("decode sleeps for two thirds of a step", "reads.py", Cause.DECODE, computing_ms=20, cause_ms=40),
    Scene("decode uses the CPU", "reads.py", Cause.DECODE_BY_CPU, computing_ms=30, cause_ms=20),
    Scene("decode uses the CPU for most of a step", "reads.py", Cause.DECODE_BY_CPU, computing_ms=15, cause_ms=45),
    Scene("a worker of DataLoader is too slow", "loads.py", Cause.DECODE, computing_ms=20, cause_ms=50, workers=1),
    Scene("DataLoader decodes for most of a step", "loads.py", Cause.DECODE, computing_ms=10, cause_ms=40),
    Scene("a store sends a little slowly", "reads.py", Cause.STORE, computing_ms=45, cause_ms=8),
    Scene("a store sends more slowly", "reads.py", Cause.STORE, computing_ms=25, cause_ms=35),
    Scene("a store sends for most of a step", "reads.py", Cause.STORE, computing_ms=12, cause_ms=48),
    Scene("a batch is some small files", "reads.py", Cause.FILES, computing_ms=45, cause_ms=5),
    Scene("small files take half of a step", "reads.py", Cause.FILES, computing_ms=25, cause_ms=25),
    Scene("small files take most of a step", "reads.py", Cause.FILES, computing_ms=12, cause_ms=36),
    Scene("a rank is a little slow", "together.py", Cause.SLOW_RANK, computing_ms=40, cause_ms=8, ranks=2),
    Scene("a rank is three times as slow", "together.py", Cause.SLOW_RANK, computing_ms=20, cause_ms=40, ranks=2),
    Scene("two busy processes beside the rank", "crowded.py", Cause.CPUS, computing_ms=20, others=2),
    Scene("six busy processes beside the rank", "crowded.py", Cause.CPUS, computing_ms=15, others=6),
    Scene("checkpoints take a little", "saves.py", Cause.CHECKPOINT, computing_ms=45, cause_ms=5),
    Scene("checkpoints take more than half", "saves.py", Cause.CHECKPOINT, computing_ms=20, cause_ms=30),
    Scene("checkpoints take most of the time", "saves.py", Cause.CHECKPOINT, computing_ms=12, cause_ms=48),
    Scene("gradients take a little longer", "together.py", Cause.ALLREDUCE, computing_ms=45, cause_ms=8, ranks=2),
    Scene("gradients take most of a step", "together.py", Cause.ALLREDUCE, computing_ms=12, cause_ms=36, ranks=2),
    Scene("DataLoader has hardly anything to do", "loads.py", Cause.NONE, computing_ms=40),
    Scene("two ranks are alike", "together.py", Cause.NONE, computing_ms=40, ranks=2),
    Scene("checkpoints are quick", "saves.py", Cause.NONE, computing_ms=40),
    Scene("the rank has a CPU for itself", "crowded.py", Cause.NONE, computing_ms=40),
)
