"""A function whose time counts as spent on something."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, TypeVar

if TYPE_CHECKING:
    from ..step_account import StepAccount

T = TypeVar("T")


def timed(stock: Callable[..., T], account: StepAccount, kind: int) -> Callable[..., T]:
    """The same function; while it runs, the account has the rank spend its time on that kind of thing."""

    @functools.wraps(stock)
    def timed(*args: Any, **kwargs: Any) -> T:
        account.begin(kind)
        try:
            return stock(*args, **kwargs)
        finally:
            account.end()

    return timed
