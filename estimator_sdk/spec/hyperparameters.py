"""Hyperparameters: from what a user passes to the strings that the service carries.

The limits are those of `HyperParameters` in the CreateTrainingJob API reference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from estimator_container.contract.hyperparameters import RESERVED_NAMES, RESERVED_PREFIX, can_be_passed, is_reserved
from estimator_container.contract.reserved import OWN_PREFIX, Hyperparameters, Reserved, WrongHyperparameter

from ..errors import InvalidArgument
from ..values.naming import shown
from . import limits

MAX_COUNT = 100
MAX_KEY_LENGTH = 256
MAX_VALUE_LENGTH = 2500
_NOT_IN_A_NAME = re.compile("[=\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LIMITED = ("stop_timeout", "hang_timeout", "cpus", "memory", "checkpoint_keep")
"""Arguments of an estimator, which has checked them; a job that was made elsewhere has not been."""
WHAT_A_NAME_IS = "which is empty, or holds '=', a NUL or another control character, or an unpaired surrogate"
"""What to say of a text that `can_be_name` refuses."""


def encode(hyperparameters: Mapping[str, object]) -> dict[str, str]:
    """Each value as JSON, which the container decodes; as a JSON string, a str arrives byte for byte.

    NumPy scalars become the Python numbers they stand for. NaN and the infinities are kept in the form that
    Python reads back. Raises InvalidArgument for a key that is reserved or cannot be an option, and for a value that
    JSON cannot say.

    >>> encode({"lr": 0.1, "name": "a b", "layers": [64, 10]})
    {'lr': '0.1', 'name': '"a b"', 'layers': '[64, 10]'}
    """
    for key in hyperparameters:
        _check_key(key)
    return {key: _encode_value(key, value) for key, value in hyperparameters.items()}


def decode(encoded: Mapping[str, str]) -> Hyperparameters:
    """The way back, of the reserved ones too; what was decoded just before is not decoded again.

    Raises InvalidArgument for a reserved one that holds what it may not.
    """
    return _decode(tuple(encoded.items()))


@lru_cache(maxsize=4)  # a document, and the plans that are made of it one after the other
def _decode(encoded: tuple[tuple[str, str], ...]) -> Hyperparameters:
    try:
        decoded = Hyperparameters.read(dict(encoded))
    except WrongHyperparameter as error:
        raise _wrong(error) from None
    for name in _LIMITED:
        limits.check(name, getattr(decoded.reserved, name))
    return decoded


def _wrong(error: WrongHyperparameter) -> InvalidArgument:
    """Under the name of the estimator's argument that becomes this hyperparameter, where there is such a one."""
    if not error.name.startswith(OWN_PREFIX):
        return _refused(error.name, error.what)
    argument = error.name.removeprefix(OWN_PREFIX)
    return InvalidArgument(argument, f"{argument}: {error}")


def can_be_name(text: str) -> bool:
    """Whether an option or a variable can go by a name, and be found again by it.

    >>> can_be_name("learning-rate"), can_be_name("a=b")
    (True, False)
    """
    return bool(text) and can_be_passed(text) and _NOT_IN_A_NAME.search(text) is None


def launch_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What tells hosts that the user has set variables for MPI and launchers, which they take for inherited otherwise.

    >>> launch_variables({"OMPI_MCA_btl": "self,tcp", "COLOUR": "red"})
    {'sagemaker_estimator_launch_variables': '["OMPI_MCA_btl"]'}
    """
    from estimator_container.worlds.mpi import inherited

    found = inherited.of_launchers(environment)
    return Reserved(launch_variables=tuple(found) or None).encode()


def check_count(encoded: Mapping[str, str]) -> None:
    """Raises InvalidArgument if the whole map, the reserved ones included, has more than 100 entries."""
    if len(encoded) <= MAX_COUNT:
        return
    reserved = sum(map(is_reserved, encoded))
    what = f"hyperparameters has {len(encoded) - reserved} entries, and {reserved} more are added for the toolkit"
    hint = f"a job can have {MAX_COUNT} in all; put related ones into one dict, or pass a file as a channel"
    raise InvalidArgument("hyperparameters", f"{what}; {hint}")


def check_service_limits(encoded: Mapping[str, str]) -> None:
    """Raises InvalidArgument for what a cloud service would refuse: too many, too long a key or a value.

    Backends that write the map to a file themselves have no such limit on lengths.
    """
    check_count(encoded)
    for key, value in encoded.items():
        if len(key) > MAX_KEY_LENGTH:
            raise _refused(key, f"has a key of {len(key)} characters; the service accepts {MAX_KEY_LENGTH}; shorten it")
        if len(value) > MAX_VALUE_LENGTH:
            what = f"takes {len(value)} characters as JSON; the service accepts {MAX_VALUE_LENGTH}"
            raise _refused(key, f"{what}; pass it as a file in a channel")


def check_names(encoded: Mapping[str, str]) -> None:
    """Raises InvalidArgument for a name that the script could not be given, in a job that no Estimator has made."""
    for key in encoded:
        if not is_reserved(key):
            _check_key(key)


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise _refused(key, f"has a key that is {type(key).__name__}, not str; write {shown(key)!r}")
    if is_reserved(key):
        names = ", ".join(sorted(RESERVED_NAMES))
        raise _refused(key, f"is reserved for the toolkit, as is every name starting with {RESERVED_PREFIX}, {names}")
    if not can_be_name(key):
        raise _refused(key, f"has a key {WHAT_A_NAME_IS}, so it cannot be a command-line option; rename it")
    if key.startswith("-"):
        hint = f"write {bare!r}" if (bare := key.lstrip("-")) else "rename it"
        raise _refused(key, f"has a key that begins with a dash, but the dashes of an option are added to it; {hint}")


def _encode_value(key: str, value: object) -> str:
    if isinstance(value, str) and "\0" in value:
        raise _refused(key, "holds a NUL byte, which no command line can carry; pass it as a file in a channel")
    try:
        return json.dumps(value, default=_scalar)
    except _NotJson as error:
        inside = "" if error.value is value else f"holds {_type_name(error.value)} and "
        raise _refused(
            key, f"{inside}is {_type_name(value)}; JSON has only numbers, strings, lists and dicts"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused(key, f"is {_type_name(value)} that JSON cannot represent: {error}; pass a string") from None


class _NotJson(Exception):
    def __init__(self, value: object) -> None:
        super().__init__(value)
        self.value = value


def _scalar(value: object) -> object:
    """What a scalar of NumPy, TensorFlow or PyTorch stands for, told by its empty shape."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise _NotJson(value)


def _type_name(value: object) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}".replace("a builtins.", "a ")


def _refused(key: object, what: str) -> InvalidArgument:
    argument = f"hyperparameters[{shown(key)}]"
    return InvalidArgument(argument, f"{argument} {what}")
