"""The formats of shards, each read by the library that keeps it: a shard is a sequence of samples.

tar        `tarfile`, with the names of files as webdataset has them: a sample is a dict of bytes
tfrecord   TensorFlow; a sample is the bytes of a record
parquet    pyarrow; a sample is a dict of a row's values
npy        NumPy; a sample is a row of the array
"""

from __future__ import annotations

import itertools
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Union

from ..errors import DataError
from .index_first import MARK, without_index

Sample = Any
"""What a format makes of one sample, or a decoder of that."""
TarSample = dict[str, Union[str, bytes]]

_SUFFIXES = {".tar": "tar", ".tfrecord": "tfrecord", ".tfrecords": "tfrecord", ".parquet": "parquet", ".npy": "npy"}
FORMATS = tuple(dict.fromkeys(_SUFFIXES.values()))
_KEY_AND_FIELD = re.compile(r"((?:.*/|)[^.]+)[.]([^/]*)")  # as webdataset's base_plus_ext
KEY = "__key__"


def format_of(name: str) -> str | None:
    """The format that a name tells.

    >>> format_of("train-000001.tar"), format_of("notes.txt")
    ('tar', None)
    """
    return next((format for suffix, format in _SUFFIXES.items() if name.endswith(suffix)), None)


def key_and_field(name: str) -> tuple[str, str] | None:
    """The sample that a file belongs to, and what it is of that; None for one that belongs to none.

    >>> key_and_field("cats/17.seg.PNG"), key_and_field("README")
    (('cats/17', 'seg.png'), None)
    """
    found = _KEY_AND_FIELD.fullmatch(name)
    return None if found is None or name.startswith("__") else (found[1], found[2].lower())


def open_shard(format: str, file: BinaryIO) -> Sequence[Sample]:
    """The samples of a shard, which is an open file with a name; it stays open as long as they are in use.

    Raises DataError for a file that is not of the format, or a format whose library is not installed.
    """
    if format not in _OPENERS:
        raise DataError(f"there is no format {format!r}: use one of {', '.join(FORMATS)}")
    return _OPENERS[format](file)


def count(format: str, file: BinaryIO) -> int:
    """How many samples a shard has."""
    return ParquetRows.rows(file) if format == "parquet" else len(open_shard(format, file))


class StrictHeader(tarfile.TarInfo):
    """A header that is damaged, or not whole, is an error wherever it is, and never skipped or taken for the end."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> StrictHeader:
        """As its parent; raises ReadError for what is neither a header nor the zeros at an end.

        The parent itself calls `frombuf` for that in some releases of Python, and in others a function of its own.
        """
        source: Any = tar.fileobj
        buf = source.read(tarfile.BLOCKSIZE)
        header: Any = cls._of(buf, tar)
        header.offset = source.tell() - tarfile.BLOCKSIZE
        found: StrictHeader = header._proc_member(tar)
        return found

    @classmethod
    def _of(cls, buf: bytes, tar: tarfile.TarFile) -> tarfile.TarInfo:
        try:
            return cls.frombuf(buf, str(tar.encoding), tar.errors)
        except tarfile.HeaderError as error:
            if MARK in buf:
                what = "index.json comes behind a shard, so name the shards to come behind it"
                raise tarfile.ReadError(what) from None
            if any(buf):
                raise tarfile.ReadError(str(error)) from None
            raise


class TarSamples(Sequence[TarSample]):
    """The samples of a tar file; only the headers are read beforehand."""

    def __init__(self, file: BinaryIO) -> None:
        try:
            self._tar = tarfile.open(fileobj=file, mode="r:", tarinfo=StrictHeader)  # noqa: SIM115 - as long as the file is
            self._samples = list(grouped(self._tar, lambda member: member.name))
        except tarfile.TarError as error:
            raise DataError(f"{file.name} is not a complete tar file ({error}): write it again") from None

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as Sequence has it
        key, members = self._samples[index]
        return {KEY: key, **{field: self._content(member) for field, member in members}}

    def _content(self, member: tarfile.TarInfo) -> bytes:
        return _content(self._tar, member)


def stream_tar(file: BinaryIO) -> Iterator[TarSample]:
    """The samples of tar files that come one after the other through a pipe, behind their list or without one.

    Raises DataError.
    """
    shards: Any = without_index(file)
    try:
        with tarfile.open(fileobj=shards, mode="r|", ignore_zeros=True, tarinfo=StrictHeader) as tar:
            members = ((member, _content(tar, member)) for member in tar if member.isfile())
            for key, fields in grouped(members, lambda each: each[0].name):
                yield {KEY: key, **{field: content for field, (_, content) in fields}}
    except tarfile.TarError as error:
        raise DataError(f"what the pipe brings is not a row of tar files ({error}): check the channel") from None


def grouped(files: Iterable[Any], name_of: Callable[[Any], str]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Neighbours of one key are a sample: its key, and what each is of it. Raises DataError for two of one name."""
    named = ((key_and_field(name_of(each)), each) for each in files if _is_file(each))
    for key, members in itertools.groupby((each for each in named if each[0]), key=lambda each: (each[0] or [""])[0]):
        fields = [(name[1], each) for name, each in members if name]
        twice = [field for field, _ in fields if sum(field == other for other, _ in fields) > 1]
        if twice:
            raise DataError(f"the sample {key!r} has two files {twice[0]!r}: give them different names")
        yield key, fields


def _is_file(each: object) -> bool:
    return each.isfile() if isinstance(each, tarfile.TarInfo) else True


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = tar.extractfile(member)
    content = opened.read() if opened else b""
    if len(content) != member.size:
        raise DataError(f"{tar.name!s} ends in the middle of {member.name!r}: write it again")
    return content


class ParquetRows(Sequence[Sample]):
    """The rows of a Parquet file, which is in memory as long as it is open."""

    def __init__(self, file: BinaryIO) -> None:
        self._table = self._read("read_table", file)

    @classmethod
    def rows(cls, file: BinaryIO) -> int:
        """How many rows a file has, by what stands at its end."""
        return int(cls._read("ParquetFile", file).metadata.num_rows)

    @staticmethod
    def _read(how: str, file: BinaryIO) -> Any:  # noqa: ANN401 - of pyarrow
        library = _library("pyarrow.parquet", "pyarrow")
        try:
            return getattr(library, how)(file)
        except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
            raise DataError(f"{file.name} is not a Parquet file ({error}): write it again") from None

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as Sequence has it
        return self._table.slice(index, 1).to_pylist()[0]


class ArrayRows(Sequence[Sample]):
    """The rows of an array, which is mapped and not read; each is a copy, which stays."""

    def __init__(self, file: BinaryIO) -> None:
        numpy = _library("numpy", "numpy")
        try:
            self._rows = numpy.load(file.name, mmap_mode="r", allow_pickle=False)
        except (EOFError, ValueError) as error:
            raise DataError(f"{file.name} is not an array of NumPy ({error}): write it again with numpy.save") from None
        if not self._rows.shape:
            raise DataError(f"{file.name} has a single value, and no rows: write it again as an array of samples")
        self._copy = numpy.array

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401 - as Sequence has it
        return self._copy(self._rows[index])


def _records(file: BinaryIO) -> Sequence[Sample]:
    tensorflow = _library("tensorflow", "tensorflow-cpu")
    try:
        return list(tensorflow.data.TFRecordDataset(file.name).as_numpy_iterator())
    except tensorflow.errors.DataLossError as error:
        raise DataError(f"{file.name} is not a file of TFRecords ({error.message}): write it again") from None


def _library(module: str, package: str) -> Any:  # noqa: ANN401 - a module
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DataError(f"shards of this format need the package {package} ({error}): pip install {package}") from None


_OPENERS: dict[str, Callable[[BinaryIO], Sequence[Sample]]] = {
    "tar": TarSamples,
    "tfrecord": _records,
    "parquet": ParquetRows,
    "npy": ArrayRows,
}
