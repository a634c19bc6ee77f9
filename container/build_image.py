"""Build a training image with the toolkit of this checkout: `python container/build_image.py mpi`.

    python container/build_image.py mpi [--base IMAGE] [--tag NAME] [--debian-base]

The images are described in the `Dockerfile` beside this file. The base is pulled by name. Where nothing can be pulled,
`--debian-base` makes one from Debian's packages with `debootstrap` (as root, about half a minute) and uses that.

Behind a proxy with a certificate authority of its own, PIP_CERT or SSL_CERT_FILE of this machine says where its
certificates are; the stage that installs packages uses them, and the image does not hold them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
DEFAULT_BASE = "python:3.11-slim-bookworm"
DEBIAN_BASE = "estimator/bookworm:min"
TARGETS = ("mpi", "tensorflow")

WITH_CA = """# Run a command with the building machine's certificates, if it has brought any.
for bundle in /opt/ca/*.pem; do [ ! -e "$bundle" ] || export PIP_CERT="$bundle" SSL_CERT_FILE="$bundle"; done
exec "$@"
"""

TOOLKIT_INSTALL = """# Make the toolkit the image's `train`, and let its Python import it.
set -e
site=$(/opt/venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo /opt/toolkit > "$site/estimator_container.pth"
command='exec /opt/venv/bin/python -I -S /opt/toolkit/estimator_container train "$@"'
printf '#!/bin/sh\\n%s\\n' "$command" > /usr/local/bin/train
chmod 755 /usr/local/bin/train
/opt/venv/bin/python -m compileall -q /opt/toolkit
"""


def run(*command: str) -> None:
    """Run a command with its output shown. Exits with its code when it fails."""
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        sys.exit(f"build_image: {' '.join(command[:3])} … ended with exit code {done.returncode}")


def image_exists(name: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False).returncode == 0


def make_debian_base() -> str:
    """A minimal Debian 12 as an image, unless there is one from an earlier time."""
    if image_exists(DEBIAN_BASE):
        return DEBIAN_BASE
    if shutil.which("debootstrap") is None:
        sys.exit("build_image: --debian-base needs debootstrap: apt-get install -y debootstrap")
    with tempfile.TemporaryDirectory() as folder:
        run("debootstrap", "--variant=minbase", "bookworm", folder)
        tar = subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE)
        imported = subprocess.run(["docker", "import", "-", DEBIAN_BASE], stdin=tar.stdout, check=False)
        if tar.wait() != 0 or imported.returncode != 0:
            sys.exit("build_image: the Debian base could not be imported into the engine")
    return DEBIAN_BASE


def write_context(context: Path) -> None:
    """Everything that the Dockerfile copies."""
    shutil.copytree(
        HERE / "estimator_container",
        context / "toolkit" / "estimator_container",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (context / "toolkit" / "install").write_text(TOOLKIT_INSTALL)
    shutil.copy(HERE.parent / "constraints.txt", context)
    (context / "with-ca").write_text(WITH_CA)
    shutil.copy(HERE / "horovod" / "build_horovod.py", context)
    (context / "ca").mkdir()
    bundle = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    if bundle and Path(bundle).is_file():
        shutil.copy(bundle, context / "ca" / "bundle.pem")


def build(target: str, base: str, tag: str) -> None:
    """Build one target of the Dockerfile."""
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        write_context(context)
        arguments = ["--file", str(HERE / "Dockerfile"), "--target", target, "--build-arg", f"BASE={base}"]
        os.environ["DOCKER_BUILDKIT"] = "0"
        # The host's network: the classic builder gives each step the same way out as this machine has.
        run("docker", "build", "--network", "host", *arguments, "--tag", tag, str(context))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--base", default=DEFAULT_BASE, help=f"the image to build on (default: {DEFAULT_BASE})")
    parser.add_argument("--debian-base", action="store_true", help="make the base from Debian's packages")
    parser.add_argument("--tag", help="the image's name (default: estimator/TARGET:latest)")
    settings = parser.parse_args()
    base = make_debian_base() if settings.debian_base else settings.base
    tag = settings.tag or f"estimator/{settings.target}:latest"
    build(settings.target, base, tag)
    print(f"{tag} is built; use it as image_uri={tag!r}")


if __name__ == "__main__":
    main()
