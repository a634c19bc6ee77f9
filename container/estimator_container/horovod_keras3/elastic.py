"""`hvd.elastic` in a world whose size is fixed: the function runs once, on the state that rank 0 has.

Horovod's elastic driver is that of `horovodrun`, and needs Gloo. Without it Horovod's `run` would answer an error of a
collective operation by leaving MPI and joining it again, which MPI does not allow; and on TensorFlow it swallows what
is of another kind. Here such an error ends the script, and the job is started again where that may help.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_SENTENCE = (
    "hvd.elastic.run calls {name}() once, because the size of this job's world is fixed: Horovod's elastic driver "
    "belongs to horovodrun with Gloo. state.commit() and state.restore() keep the state in memory; after the loss of a "
    "host max_retry_attempts= starts the job again, from what the script keeps in SM_CHECKPOINT_DIR"
)


def adapt(module: ModuleType) -> None:
    """Adapt the `elastic` of `horovod.tensorflow` or `horovod.torch`, unless a driver is there."""
    if int(os.environ.get("HOROVOD_ELASTIC") or 0):
        return
    for name, other in list(sys.modules.items()):  # those of Keras have it from there
        if name.partition(".")[0] == "horovod" and vars(other).get("run") is module.run:
            other.run = run  # type: ignore[attr-defined]
    state = getattr(module, "TensorFlowState", None)
    if state is not None:
        state.sync = _sync(state.sync)


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """In the place of `hvd.elastic.run`."""

    @functools.wraps(func)
    def once(state: Any, *args: Any, **kwargs: Any) -> Any:
        if state._rank() == 0:
            print(_SENTENCE.format(name=getattr(func, "__name__", "the function")), file=sys.stderr, flush=True)
        state.sync()
        return func(state, *args, **kwargs)

    return once


def _sync(sync: Callable[[Any], None]) -> Callable[[Any], None]:
    """Horovod's own gives variables of TensorFlow 2 the values of rank 0 when the state is made, and never again."""

    @functools.wraps(sync)
    def sync_variables(self: Any) -> None:
        if self.session is None:
            from horovod.tensorflow.functions import broadcast_variables

            broadcast_variables(self.variables, root_rank=0)
        sync(self)

    return sync_variables
