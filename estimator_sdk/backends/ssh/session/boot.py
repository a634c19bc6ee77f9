"""What a session runs on a machine first, as text: it brings the software there, and hands over to it.

It is given to the machine's own Python, which may be too old for everything else, and needs the standard library alone.
"""

import importlib
import json
import os
import sys

OURS = "estimator-sdk"
"""Our folder in the user's cache."""


def main() -> None:
    """Answer what is missing here until all is there, and then the requests of the session."""
    if sys.version_info < (3, 9):
        _say({"error": "python3 is " + sys.version.split()[0] + ", but hosts need 3.9 or newer"})
        return
    given = json.loads(sys.stdin.buffer.readline())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    cache = os.path.join(cache if os.path.isabs(cache) else os.path.expanduser("~/.cache"), OURS)
    root = os.path.join(cache, "software", given["digest"])
    has_code = bool(given["code"]) and os.path.exists(os.path.join(cache, "code", given["code"]))
    try:
        _bring(root, has_code)
    except OSError as error:
        _say({"error": "the software cannot be written to " + root + ": " + str(error) + "; make room there"})
        return
    sys.path.insert(0, os.path.join(root, "estimator_sdk", "backends", "ssh", "on_host"))
    serve = importlib.import_module("serve")  # by itself: see there
    del sys.path[0]
    serve.main(root, given)


def place_of(folder: str) -> str:
    """What tells a folder from all others, whichever machine looks at it: so two know that they share one.

    Raises OSError.
    """
    path = os.path.join(folder, ".place")
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        pass
    mark = os.urandom(16).hex()
    draft = path + "." + mark
    with open(draft, "x") as file:
        file.write(mark)
    try:
        os.link(draft, path)
    except FileExistsError:  # another machine was quicker
        with open(path) as file:
            return file.read()
    except OSError:  # where files cannot have two names, folders are taken for different ones
        pass
    finally:
        os.unlink(draft)
    return mark


def _bring(root: str, has_code: bool) -> None:
    above = os.path.dirname(root)
    os.makedirs(above, 0o700, exist_ok=True)
    while True:
        needs = not os.path.isdir(root)
        _say({"needs": needs, "has_code": has_code, "place": place_of(above) if needs else ""})
        if not needs:
            return
        size = json.loads(sys.stdin.buffer.readline())["size"]
        if size:
            _unpack(sys.stdin.buffer.read(size), root)
            _say({})
            return
        os.listdir(above)  # another machine may have brought it: this has a network's file system look again


def _unpack(packed: bytes, root: str) -> None:
    import io
    import shutil
    import tarfile

    draft = root + "." + os.urandom(6).hex()
    os.mkdir(draft, 0o700)
    try:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(draft)
        os.rename(draft, root)
    except OSError:
        if not os.path.isdir(root):
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _say(answer: dict) -> None:  # type: ignore[type-arg]
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
