"""Which keys of a listing one folder can hold: each as a file of its own, and all of them inside."""

from __future__ import annotations

from .errors import InvalidLocation
from .location import check_path

MAX_NAME_BYTES = 255  # NAME_MAX, linux/limits.h


class KeyTree:
    """The paths of files that are to be in one folder, as they come."""

    def __init__(self, where: str) -> None:
        """`where` is the URI that they are below, as errors name it."""
        self._where = where
        self._files = set[str]()
        self._folders = set[str]()

    def add(self, path: str) -> str:
        """`path` itself. Raises InvalidLocation where no folder can hold such a file beside those before it.

        >>> KeyTree("s3://bucket").add("a/b.txt")
        'a/b.txt'
        """
        folder = check_path(path).rpartition("/")[0]
        if folder and folder not in self._folders:
            self._add_folder(folder)
        if len(path) > MAX_NAME_BYTES // 4:  # the bytes of a letter
            self._check_names(path)
        if path in self._folders:
            raise self._both(path)
        if path in self._files:
            raise InvalidLocation(
                f"{self._where} has two objects for the same file {path!r}: remove one of them, or give it another key"
            )
        self._files.add(path)
        return path

    def _add_folder(self, folder: str) -> None:
        names = folder.split("/")
        above = ["/".join(names[:count]) for count in range(1, len(names) + 1)]
        for each in above:
            if each in self._files:
                raise self._both(each)
        self._folders.update(above)

    def _check_names(self, path: str) -> None:
        for name in path.split("/"):
            size = len(name.encode("utf-8", "surrogateescape"))
            if size > MAX_NAME_BYTES:
                raise InvalidLocation(
                    f"the key {path!r} below {self._where} has a name of {size} bytes, but a file's name has at most "
                    f"{MAX_NAME_BYTES}: give it another key, or name a prefix that excludes it"
                )

    def _both(self, path: str) -> InvalidLocation:
        return InvalidLocation(
            f"{self._where} has an object {path!r} and others below {path + '/'!r}, but a folder cannot hold a file "
            "and a folder of the same name: give it another key, or name a prefix that excludes it"
        )
