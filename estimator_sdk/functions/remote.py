"""`@remote(instance_count=2, …)`: a function that runs as a job whenever it is called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from ..errors import InvalidArgument
from ..spec.training_input import Inputs
from .call import Call
from .function_job import FunctionJob

P = ParamSpec("P")
R = TypeVar("R")


class RemoteFunction(Generic[P, R]):
    """A function decorated with `remote`; `__wrapped__` is the function itself, which runs locally."""

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], job: FunctionJob) -> None:
        functools.update_wrapper(self, function)
        self._job = job

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function as a job, wait for it, and return its return value on rank 0, or on the first host.

        Raises as `HorovodRunner.run` does.
        """
        value: R = self._job.run(Call(self.__wrapped__, args, kwargs))
        return value

    def __reduce__(self) -> tuple[object, ...]:
        # On a host it is the function itself: one that calls itself, or another, starts no job there.
        return functools.partial, (self.__wrapped__,)


@overload
def remote(function: Callable[P, R], /) -> RemoteFunction[P, R]: ...


@overload
def remote(
    *,
    inputs: Inputs | None = None,
    **settings: Any,  # noqa: ANN401 - the types are those of Estimator
) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]: ...


def remote(
    function: Callable[P, R] | None = None,
    /,
    *,
    inputs: Inputs | None = None,
    **settings: Any,
) -> RemoteFunction[P, R] | Callable[[Callable[P, R]], RemoteFunction[P, R]]:
    """Run a function as a job whenever it is called: `@remote`, or `@remote(instance_count=2, …)`.

    inputs: channels, as for `Estimator.fit`.
    settings: arguments of `Estimator`. Without `distribution` every host calls the function once, and the first host's
        return value is returned; with any distribution every rank calls it, and rank 0's value is returned.

    Raises InvalidArgument for a wrong argument when the function is decorated.
    """
    job = FunctionJob("remote", settings, inputs)
    job.check()

    def decorate(function: Callable[P, R]) -> RemoteFunction[P, R]:
        if not callable(function):
            what = f"remote decorates a function, not {function!r}; write its arguments by name"
            raise InvalidArgument("function", what)
        return RemoteFunction(function, job)

    return decorate if function is None else decorate(function)
