"""The software that the machines of a pool are given: both packages, as an archive under the hash of its bytes."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import tarfile
from pathlib import Path

import estimator_container

from ...packages import CLIENT_OF_STORES, files_of

BOOT = """
import io, json, os, shutil, sys, tarfile
if sys.version_info < (3, 10):
    print(json.dumps({"error": "python3 is " + sys.version.split()[0] + ", but hosts need 3.10 or newer"}), flush=True)
    sys.exit()
digest = json.loads(sys.stdin.buffer.readline())["digest"]
cache = os.environ.get("XDG_CACHE_HOME", "")
cache = cache if os.path.isabs(cache) else os.path.expanduser("~/.cache")
root = os.path.join(cache, "estimator-sdk", "software", digest)
try:
    needs = not os.path.isdir(root)
    os.makedirs(os.path.dirname(root), 0o700, exist_ok=True)
    print(json.dumps({"needs": needs}), flush=True)
    if needs:
        size = json.loads(sys.stdin.buffer.readline())["size"]
        draft = root + "." + os.urandom(6).hex()
        os.mkdir(draft, 0o700)
        with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read(size))) as archive:
            archive.extractall(draft)
        try:
            os.rename(draft, root)
        except OSError:
            shutil.rmtree(draft)
            if not os.path.isdir(root):
                raise
        print(json.dumps({}), flush=True)
except OSError as error:
    print(json.dumps({"error": "the software cannot be written: " + str(error)}), flush=True)
    sys.exit()
sys.path.insert(0, root)
from estimator_sdk.backends.ssh.on_host.serve import main
main(root)
"""
"""What brings it there and runs it; it is sent as text, and needs nothing."""


STORES = "stores"
"""The folder of the software that has the client of s3:// stores, where a job has one: scripts do not see it."""


@functools.cache
def archive(with_stores: bool = False) -> tuple[bytes, str]:
    """The archive, and the SHA-256 of what is in it in hex: the same wherever the same packages are packed."""
    files = {}
    for folder in (Path(__file__).parents[3], Path(estimator_container.__file__).parent):
        for path in folder.rglob("*.py"):
            files[f"{folder.name}/{path.relative_to(folder)}"] = path
    if with_stores:
        files |= {f"{STORES}/{name}": path for name, path in files_of(*CLIENT_OF_STORES).items()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(files):
            data = files[name].read_bytes()
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o600
            tar.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), 6, mtime=0), hashlib.sha256(packed.getvalue()).hexdigest()
