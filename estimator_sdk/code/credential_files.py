"""Where programs keep the credentials of a user: no code has a use for them, and none should carry them anywhere."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_IN_ANY_FOLDER = (
    *(".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".netrc", ".git-credentials", ".vault-token"),
    *(".config/git/credentials", ".config/gh", ".pgpass", ".my.cnf", ".mylogin.cnf", ".pypirc", ".docker/config.json"),
    *(".aws", ".boto", ".s3cfg", ".passwd-s3fs", ".config/rclone", ".azure", ".config/gcloud", ".oci", ".kube"),
    *(".kaggle", ".config/kaggle", ".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens"),
    *(".databrickscfg", ".modal.toml", ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d"),
    *(".mozilla", ".thunderbird", ".config/chromium", ".config/google-chrome"),
)
"""Names that mean the same at the top of any folder that is sent."""
_IN_A_HOME = (".npmrc", ".pip", ".config/pip")
"""Names that in a project are of its configuration."""


def below(folder: Path) -> frozenset[str]:
    """Names, relative to a folder, under which credentials lie in it: at its top, and in the user's home.

    Not all of them need to be there. Where one is a link, what it leads to is meant as well.
    """
    root = Path(os.path.realpath(folder))
    paths = {root / name for name in _IN_ANY_FOLDER}
    with contextlib.suppress(RuntimeError):  # a user without a home
        home = Path(os.path.realpath(Path.home()))
        paths |= {home / name for name in (*_IN_ANY_FOLDER, *_IN_A_HOME)}
    paths |= {Path(os.path.realpath(path)) for path in paths}
    return frozenset(path.relative_to(root).as_posix() for path in paths if path.is_relative_to(root))
