"""How steps are noticed on PyTorch, and weights read: of every optimizer, with or without DDP or Horovod."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from . import horovod_world
from .training import Guard, Training, Weight, places

if TYPE_CHECKING:
    from ..training.step_clock import StepClock

_SHARDED = ("_is_flat_param", "_fsdp_flattened", "tensor_model_parallel")
"""What FSDP and Megatron-LM set at parameters of which each rank has a part of its own."""
_SELDOM_AVERAGED = "torch.distributed.algorithms.model_averaging"
"""Weights that are averaged now and then differ in between."""


class _Known:
    """Facts of parameters and modules, which have no place for them: a parameter's own attributes are saved with it."""

    def __init__(self) -> None:
        self._facts: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def __setitem__(self, thing: Any, fact: Any) -> None:
        key = id(thing)
        self._facts[key] = (weakref.ref(thing, lambda _: self._facts.pop(key, None)), fact)

    def get(self, thing: Any) -> Any:
        reference, fact = self._facts.get(id(thing), (None, None))
        return fact if reference is not None and reference() is thing else None


_trainings: weakref.WeakKeyDictionary[Any, Training] = weakref.WeakKeyDictionary()
_places = _Known()
"""Parameter or module -> the module that it was registered in, and under which name."""
_parallel = _Known()
"""Parameter that DDP keeps equal -> the ranks on which it does, and its name in the model."""


def watch_optimizers(optimizer: ModuleType, guard: Guard) -> None:
    """Count the steps of every optimizer; one that steps within the step of another is a part of it."""
    depth = 0

    def before(optimizer: Any, args: object, kwargs: object) -> None:
        nonlocal depth
        if not _is_compiling():
            depth += 1

    def after(optimizer: Any, args: object, kwargs: object) -> None:
        nonlocal depth
        if _is_compiling():
            return  # what is looked up here would be cut out of the step, or stay in it for good
        depth -= 1
        if depth <= 0:
            depth = 0
            training = _trainings.get(optimizer) or guard.safely(lambda: _begin(optimizer, guard))
            if training is not None:
                training.count()

    if hasattr(optimizer, "register_optimizer_step_post_hook"):  # since PyTorch 2.0
        optimizer.register_optimizer_step_pre_hook(before)
        optimizer.register_optimizer_step_post_hook(after)


def watch_modules(module: ModuleType, guard: Guard) -> None:
    """Learn the names of parameters, which optimizers are not told."""

    def registered(parent: Any, name: str, child: Any) -> None:
        if child is not None:
            _places[child] = (weakref.ref(parent), name)

    if hasattr(module, "register_module_parameter_registration_hook"):
        module.register_module_parameter_registration_hook(registered)
        module.register_module_module_registration_hook(registered)


def watch_parallel(distributed: ModuleType, guard: Guard) -> None:
    """Learn which parameters DDP keeps equal, and on which ranks; and when a rank works by itself."""
    stock = distributed.DistributedDataParallel.__init__

    @functools.wraps(stock)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        guard.safely(lambda: _learn(self, guard))

    distributed.DistributedDataParallel.__init__ = init
    if guard.clock is not None and hasattr(distributed.DistributedDataParallel, "_run_ddp_forward"):  # since 1.12
        _time_forward_passes(distributed.DistributedDataParallel, guard.clock)


def _time_forward_passes(parallel: Any, clock: StepClock) -> None:
    """Until the end of its forward pass a rank works by itself, but for buffers that it is sent at the beginning.

    Of a GPU nothing is told: see `horovod_steps.watch_waiting`.
    """
    stock_forward, stock_run = parallel.forward, parallel._run_ddp_forward

    @functools.wraps(stock_forward)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_compiling() and self.device_type == "cpu":
            clock.work_ends()
        return stock_forward(self, *args, **kwargs)

    @functools.wraps(stock_run)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or self.device_type != "cpu":
            return stock_run(self, *args, **kwargs)
        clock.work_begins()
        result = stock_run(self, *args, **kwargs)
        clock.work_ends()
        return result

    parallel.forward, parallel._run_ddp_forward = forward, run


def watch_joining(join: ModuleType, guard: Guard) -> None:
    """Within `Join` some ranks may do more steps than others; all have come to its end."""
    join.Join.__exit__ = guard.restarting(join.Join.__exit__)


def _is_compiling() -> bool:
    compiler: Any = getattr(torch, "compiler", None)  # since PyTorch 2.1
    return hasattr(compiler, "is_compiling") and bool(compiler.is_compiling())


def _learn(parallel: Any, guard: Guard) -> None:
    members = torch.distributed.get_process_group_ranks(parallel.process_group)
    ranks = () if len(members) == guard.size else tuple(sorted(members))
    for name, parameter in parallel.module.named_parameters():
        if name not in parallel.parameters_to_ignore:
            _parallel[parameter] = (ranks, name)


def _begin(optimizer: Any, guard: Guard) -> Training:
    training = guard.begin(functools.partial(_weights, weakref.ref(optimizer)))
    _trainings[optimizer] = training
    parallel = [_parallel.get(parameter) for parameter in _parameters(optimizer)]
    if hasattr(optimizer, "_allreduce_delay"):  # one of Horovod's
        training.ranks = horovod_world.ranks_of(getattr(optimizer, "process_set", None))
    elif parallel and None not in parallel and len({ranks for ranks, _ in parallel}) == 1:
        training.ranks = parallel[0][0]
    if _SELDOM_AVERAGED in sys.modules:
        training.end()
    return training


def _parameters(optimizer: Any) -> Iterator[Any]:
    """What it changes, but for what is a part of this rank's own."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            is_whole = type(parameter) in (torch.nn.Parameter, torch.Tensor)
            if is_whole and parameter.requires_grad and not any(getattr(parameter, name, False) for name in _SHARDED):
                yield parameter


def _weights(reference: weakref.ref[Any]) -> list[Weight]:
    optimizer = reference()
    names = getattr(optimizer, "_parameter_names", {})  # Horovod's optimizers have been told
    parameters = _parameters(optimizer) if optimizer is not None else ()
    return [
        _weight(names.get(parameter) or _name(parameter) or f"parameter {number}", parameter)
        for number, parameter in enumerate(parameters)
    ]


def _name(thing: Any) -> str:
    """The path of a parameter in the outermost module that is known to have it; empty where none is."""
    known = _parallel.get(thing)
    if known is not None:
        return str(known[1])
    parts: list[str] = []
    place: tuple[Any, str] | None = _places.get(thing)
    while place is not None:
        parts.insert(0, place[1])
        place = _places.get(place[0]())
    return ".".join(parts)


def _weight(name: str, parameter: Any) -> Weight:
    dtype = str(parameter.dtype).rpartition(".")[2]
    return Weight(name, dtype, tuple(parameter.shape), functools.partial(_numbers, weakref.ref(parameter)))


def _numbers(reference: weakref.ref[Any]) -> list[float]:
    parameter = reference()
    if parameter is None:
        raise ReferenceError("the parameter is gone")
    if parameter.is_cuda and torch.cuda.is_current_stream_capturing():
        raise ReferenceError("the steps of a graph that is captured are never seen")
    some = parameter.detach().reshape(-1)[places(parameter.numel())]
    numbers: list[float] = some.double().tolist()
    return numbers
