"""Arguments of SageMaker's SDK, version 2, that nothing here has a use for: taken with a warning, or refused.

Its other arguments are arguments of `Estimator`, under the same names.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any, TypeVar

from ..errors import InvalidArgument
from ..values.arguments import named_arguments

C = TypeVar("C", bound=type)

# What is lost without them is at most time.
_MEANINGLESS = {
    "sagemaker_session": "region, credentials and endpoints come from this machine's AWS settings",
    "compiler_config": "the training compiler is not used",
}
# Without them something else would run.
_REFUSED = {
    "git_config": "clone the repository, and give its folder as source_dir",
    "model_dir": "put it into hyperparameters, where the script finds it as --model_dir",
    "training_recipe": "give the script as entry_point, and what the recipe sets as hyperparameters",
    "recipe_overrides": "give the script as entry_point, and what the recipe sets as hyperparameters",
}


class ArgumentIgnored(UserWarning):
    """An argument was accepted that has no effect."""


def takes_sdk_v2_arguments(cls: C) -> C:
    """Make a dataclass take, besides its own by name, the arguments that have a meaning only in SageMaker's SDK.

    Those that are given and not None are named in one ArgumentIgnored; those whose loss would change what runs raise
    InvalidArgument, which says what to do instead.
    """
    init = named_arguments(cls).__init__  # type: ignore[misc]

    @functools.wraps(init)
    def taking(self: object, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the dataclass has the types
        foreign = {name: kwargs.pop(name) for name in (*_MEANINGLESS, *_REFUSED) if name in kwargs}
        for name, instead in _REFUSED.items():
            if foreign.get(name):
                raise InvalidArgument(name, f"{name}, an argument of SageMaker's SDK, is not supported; {instead}")
        ignored = [f"{name} ({why})" for name, why in _MEANINGLESS.items() if foreign.get(name) is not None]
        if ignored:
            warnings.warn(f"ignored, because it has no effect here: {', '.join(ignored)}", ArgumentIgnored, 2)
        init(self, *args, **kwargs)

    cls.__init__ = taking  # type: ignore[misc]
    return cls
