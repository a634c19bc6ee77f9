"""`estimator data pack|index`: shards of many small files, and the list of the shards of a data set."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import BackendError, InvalidArgument
from ...values import uris
from ...values.naming import size
from .. import answer
from ..parser import Parser, count
from ..reports.progress_bar import Bar

if TYPE_CHECKING:
    from estimator_container.training.for_scripts.data.packing import Packed

_SHARD_MIB = 64


def add(parser: Parser) -> None:
    parser.add_argument(
        "action",
        choices=["pack", "index"],
        help="make shards of the small files in a folder; list the shards of a data set and count their samples",
    )
    where = "pack: the folder, and the URI for the shards; index: the URI of the shards"
    parser.add_argument("places", nargs="+", metavar="DIR URI", help=where)
    parser.add_argument("--shard-mib", type=count, metavar="N", help=f"the size of a shard (default {_SHARD_MIB})")
    parser.add_argument("--seed", type=int, metavar="N", help="of the shuffle of the samples (default 0)")
    parser.add_argument("--keep-order", action="store_true", help="keep the samples in the order of their names")
    parser.add_argument("--pattern", metavar="GLOB", help="for index: which files are shards, such as '*.tar'")


def run(arguments: Namespace) -> int:
    from estimator_container.storage import InvalidLocation, StorageError
    from estimator_container.training.for_scripts.data.errors import DataError

    try:
        return _pack(arguments) if arguments.action == "pack" else _index(arguments)
    except InvalidLocation as error:
        raise InvalidArgument("uri", f"URI: {error}") from None
    except (DataError, StorageError) as error:
        raise BackendError(str(error)) from None


def _pack(arguments: Namespace) -> int:
    from estimator_container.training.for_scripts.data import packing

    if len(arguments.places) != 2:
        raise InvalidArgument("places", "pack needs a folder and a URI: estimator data pack DIR s3://bucket/prefix")
    if arguments.keep_order and arguments.seed is not None:
        raise InvalidArgument("seed", "--seed shuffles the samples, and --keep-order does not; give only one of them")
    if arguments.pattern is not None:
        raise InvalidArgument("pattern", "--pattern is for index; pack takes all files of the folder")
    folder, target = arguments.places
    target = uris.checked("URI", target)
    if not Path(folder).is_dir():
        raise InvalidArgument("places", f"{folder!r} is not a folder; name the one with the files")
    seed = None if arguments.keep_order else arguments.seed or 0
    with Bar(f"packing {folder}") as bar:
        packed = packing.pack(folder, target, (arguments.shard_mib or _SHARD_MIB) << 20, seed, bar)
    done = f"{packed.samples} samples in {_shards(packed)} at {target}"
    lines = [f"{done}; each was read back, and is the same as its files"]
    if packed.lacking:
        lines.append(f"note: {packed.lacking}; scripts that read both must allow for that")
    answer.show(arguments, packed._asdict(), lines)
    return 0


def _index(arguments: Namespace) -> int:
    from estimator_container.training.for_scripts.data import packing

    if len(arguments.places) != 1:
        raise InvalidArgument("places", "index needs one URI: estimator data index s3://bucket/prefix")
    for name in ("shard_mib", "seed", "keep_order"):
        if getattr(arguments, name) not in (None, False):
            raise InvalidArgument(name, f"--{name.replace('_', '-')} is for pack; leave it out")
    target = uris.checked("URI", arguments.places[0])
    found = packing.index(target, arguments.pattern)
    listed = f"{target.rstrip('/')}/index.json lists {found.samples} samples in {_shards(found)}"
    document = {name: value for name, value in found._asdict().items() if name != "lacking"}  # only headers are read
    answer.show(arguments, document, [listed])
    return 0


def _shards(made: Packed) -> str:
    return f"{made.shards} shard{'' if made.shards == 1 else 's'} of {size(made.size)}"
