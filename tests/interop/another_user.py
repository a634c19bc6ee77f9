"""A user without rights, who may use the engine and has the SDK, for what root's own jobs cannot show."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOBODY = 65534
SECONDS = 300
IMPORTED = ["estimator_sdk", "estimator_container", "docker"]
IMPORTED += ["requests", "urllib3", "idna", "certifi", "charset_normalizer"]  # by docker


@dataclass(frozen=True)
class AnotherUser:
    """The user that runs the tests, if that is not root, else nobody."""

    uid: int
    folder: Path
    """The user's own, with the packages that are imported, and a home for jobs."""

    def run(self, program: str, *arguments: str) -> None:
        """Run a Python program that uses the SDK, with `sys.argv[1:]`. Raises CalledProcessError if it fails."""
        as_user: dict[str, Any] = {}
        if os.getuid() == 0:
            as_user = {"user": self.uid, "group": self.uid}
            as_user["extra_groups"] = [Path("/var/run/docker.sock").stat().st_gid]
        # Root's environment may be closed to others too: Debian's Python, and copies of what it imports.
        command = ["/usr/bin/python3", "-c", program, *arguments]
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "PYTHONPATH": str(self.folder / "packages")}
        env["ESTIMATOR_HOME"] = str(self.folder / "home")
        subprocess.run(command, check=True, cwd=self.folder, env=env, timeout=SECONDS, **as_user)

    def left(self) -> list[Path]:
        """All that is in the folder of the only job, and the folder itself."""
        (job,) = (self.folder / "home" / "jobs").iterdir()
        return [job, *job.rglob("*")]


@contextlib.contextmanager
def another_user() -> Iterator[AnotherUser]:
    """The user, whose folder is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="estimator-user-"))  # pytest's own folders are closed to other users
    user = AnotherUser(os.getuid() or NOBODY, folder)
    try:
        shutil.chown(folder, user.uid)
        for name in IMPORTED:
            found = importlib.util.find_spec(name)
            assert found is not None and found.origin is not None
            shutil.copytree(Path(found.origin).parent, folder / "packages" / name)
        yield user
    finally:
        shutil.rmtree(folder)
