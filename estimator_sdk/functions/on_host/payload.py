"""The bytes that carry a function, a return value or an exception from one Python to another.

A line of JSON, the header, and then what cloudpickle made. The header says by which versions that was made, how long
it is and its SHA-256; all of it is compared before anything is unpickled. **A pickle is code**: who unpickles one runs
what its maker wrote. The checksum tells damage, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

FORMAT = 1


class PayloadError(Exception):
    """A payload that is not what it should be; nothing of it was unpickled."""


def pack(kind: str, value: object) -> bytes:
    """`value` as a payload of that kind, such as `function`. Raises whatever pickling it raises."""
    import cloudpickle

    body: bytes = cloudpickle.dumps(value)
    header = {
        "format": FORMAT,
        "kind": kind,
        "python": _python(),
        "cloudpickle": cloudpickle.__version__,
        "bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return json.dumps(header).encode() + b"\n" + body


def unpack(kind: str, data: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """The opposite of `pack`. Raises PayloadError, before unpickling, and whatever unpickling raises.

    The minor version of Python has to be the same, because functions travel as bytecode; of cloudpickle the major.
    """
    import cloudpickle

    line, _, body = data.partition(b"\n")
    header = _header(kind, line)
    if header["python"] != _python():
        what = f"the {kind} was pickled by Python {header['python']}, but this is Python {_python()}"
        raise PayloadError(f"{what}; use the same on both sides, such as an image with Python {header['python']}")
    if _major(header["cloudpickle"]) != _major(cloudpickle.__version__):
        what = f"the {kind} was pickled by cloudpickle {header['cloudpickle']}, but this is {cloudpickle.__version__}"
        raise PayloadError(f"{what}; install the same major version on both sides")
    if len(body) != header["bytes"] or hashlib.sha256(body).hexdigest() != header["sha256"]:
        what = f"the {kind} has {len(body)} bytes instead of {header['bytes']}, or its checksum is wrong"
        raise PayloadError(f"{what}: it was damaged in transit; run the job again")
    return cloudpickle.loads(body)


def _header(kind: str, line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
        given = (header["format"], header["kind"])
        if not isinstance(header["bytes"], int) or not all(
            isinstance(header[name], str) for name in ("python", "cloudpickle", "sha256")
        ):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise PayloadError(f"the {kind} has no readable header: it was damaged in transit") from None
    if given != (FORMAT, kind):
        what = f"{_a(kind)} in format {FORMAT} was expected, but this is {_a(given[1])} in format {given[0]}"
        raise PayloadError(f"{what}; use the same version of estimator-sdk on both sides")
    return dict(header)


def _a(noun: object) -> str:
    return f"an {noun}" if str(noun)[:1] in "aeiou" else f"a {noun}"


def _python() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def _major(version: str) -> str:
    return version.partition(".")[0]
