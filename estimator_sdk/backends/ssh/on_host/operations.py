"""What a machine does for a session: tell of itself, take files, start a job's supervisor, and tell of a job."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ....errors import BackendError, EstimatorError, JobNotFound
from ....values.home import JobFolder, cache_folder, make_folder, private_file
from ...supervised.job import LocalJob
from ...supervised.job_folder.registry import read
from . import start
from .copying.mirrored import MirroredFiles
from .facts import CODE

Facts = Mapping[str, Any]
Answer = tuple[dict[str, Any], bytes]


class Operations:
    """Answers the requests of one session."""

    def __init__(self, has_stores: bool = False) -> None:
        """`has_stores` says whether the client of stores was brought, for the job that is started next."""
        self._has_stores = has_stores
        self._files: dict[str, MirroredFiles] = {}
        self._passing: set[Path] = set()
        """Files that have come and are of no use when the session has ended."""
        self._door: socket.socket | None = None
        """Where other machines try whether they reach this one."""
        self._operations: dict[str, Callable[[Facts, bytes], Answer]] = {
            "facts": self._tell_facts,
            "reach": self._reach,
            "image": self._look_into_image,
            "put": self._put,
            "channel": self._channel,
            "supervise": self._supervise,
            "describe": self._describe,
            "sync": self._sync,
            "wait": self._wait,
            "ask_for_window": self._ask_for_window,
            "withdraw_window": self._withdraw_window,
            "add_output": self._add_output,
            "stop": self._stop,
            "delete": self._delete,
        }

    def answer(self, facts: Facts, data: bytes) -> Answer:
        """The answer to one request; what went wrong is its `error`."""
        try:
            return self._operations[facts["operation"]](facts, data)
        except JobNotFound as error:
            return {"missing": str(error)}, b""
        except (EstimatorError, OSError) as error:
            return {"error": str(error)}, b""

    def close(self) -> None:
        """Remove what has come, but for what is whole and stays."""
        for path in self._passing:
            path.unlink(missing_ok=True)

    def _tell_facts(self, facts: Facts, data: bytes) -> Answer:
        from .facts import facts_of_this_machine

        facts = facts_of_this_machine()
        if self._door is None:
            self._door = socket.create_server((facts["address"], 0), backlog=256)  # which nobody needs to answer at
        return {**facts, "door": self._door.getsockname()[1]}, b""

    def _reach(self, facts: Facts, data: bytes) -> Answer:
        from .facts import refused_by

        return {"refused": refused_by([(address, port) for address, port in facts["places"]])}, b""

    def _look_into_image(self, facts: Facts, data: bytes) -> Answer:
        from .running.look import look

        return {"inside": look(facts["image"], facts["words"], bool(facts["pulls"]))}, b""

    def _put(self, facts: Facts, data: bytes) -> Answer:
        place = _place(facts["name"])
        make_folder(place.parent)
        draft = place.with_name(f".{os.getpid()}.{place.name}")
        self._passing.add(draft)
        with open(draft, "wb" if facts["begins"] else "ab", opener=private_file) as file:
            file.write(data)
        if facts["ends"]:
            draft.replace(place)
            if not facts["stays"]:
                self._passing.add(place)
        return {}, b""

    def _channel(self, facts: Facts, data: bytes) -> Answer:
        return {"path": start.unpack_channel(_place(facts["archive"]), facts["keeper"], facts["name"])}, b""

    def _supervise(self, facts: Facts, data: bytes) -> Answer:
        if self._has_stores:
            _check_client_of_stores()
        code = str(_place(facts["code"])) if facts["code"] else None
        os.environ.update(facts["variables"])  # for what reads and writes stores
        return start.supervise(json.loads(data), code, facts["channels"], facts["pool"]), b""

    def _describe(self, facts: Facts, data: bytes) -> Answer:
        folder = JobFolder.for_job(facts["name"])
        record = read(folder)
        plan, request = folder.plan.read_text(encoding="utf-8", errors="replace"), LocalJob(folder).request()
        return {"record": record.fields(), "plan": plan, "request": request, "folder": str(folder.path)}, b""

    def _sync(self, facts: Facts, data: bytes) -> Answer:
        record = read(_folder(facts))
        with_outputs = bool(facts["with_outputs"]) and record.is_final
        news, contents = self._files_of(facts).news(facts["known"], with_outputs, bool(facts["with_measured"]))
        return {"record": record.fields(), **news, "size": len(contents)}, contents

    def _wait(self, facts: Facts, data: bytes) -> Answer:
        self._files_of(facts).wait(float(facts["seconds"]))
        return {}, b""

    def _ask_for_window(self, facts: Facts, data: bytes) -> Answer:
        LocalJob(_folder(facts)).ask_for_window(facts["request"])
        return {}, b""

    def _withdraw_window(self, facts: Facts, data: bytes) -> Answer:
        LocalJob(_folder(facts)).withdraw_window()
        return {}, b""

    def _add_output(self, facts: Facts, data: bytes) -> Answer:
        came = _place(facts["file"])
        try:
            LocalJob(_folder(facts)).add_output(facts["name"], came.read_text(encoding="utf-8"))
        finally:
            came.unlink()
        return {}, b""

    def _stop(self, facts: Facts, data: bytes) -> Answer:
        LocalJob(_folder(facts)).stop()
        return {}, b""

    def _delete(self, facts: Facts, data: bytes) -> Answer:
        LocalJob(_folder(facts)).delete()
        return {}, b""

    def _files_of(self, facts: Facts) -> MirroredFiles:
        path = facts["folder"]
        if path not in self._files:
            self._files[path] = MirroredFiles(Path(path))
        return self._files[path]


def _folder(facts: Facts) -> JobFolder:
    return JobFolder(Path(facts["folder"]))


def _check_client_of_stores() -> None:
    """Raises BackendError where this Python cannot load the client that was brought, and has none of its own."""
    try:
        import obstore.store  # noqa: F401
    except ImportError as error:
        what = f"its Python {sys.version.split()[0]} cannot load the client of s3:// stores that was brought ({error})"
        raise BackendError(f"{what}; install the package obstore there, or Python 3.11 or newer as python3") from None


def _place(name: str) -> Path:
    """Where a code bundle is kept, under the hash of its bytes."""
    return cache_folder() / CODE / Path(name).name
