"""Install what the user's code needs, before anything of it runs: `requirements.py CODE PACKAGE OVERLAY SETTINGS`.

The toolkit starts this file as a process of its own, so that it can go on listening while pip works.

In a container everything goes into the interpreter's own environment: the container is thrown away. Where
hosts are processes on the user's machine, that environment is the user's; then the platform names an
overlay: a virtual environment of the job's own that sees the packages below it and hides those that
it has in another version. The hosts of a job share it, and one of them does the work. Where the platform also names a
folder for that, the packages themselves are kept there for later jobs: see `kept_environment`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` has it too, and the toolkit has no need of that
if TYPE_CHECKING:
    from .pip_settings import PipEnvironment

FILE = "requirements.txt"
# Isolated, so that a file of the user's that is called like a module of pip's is not taken for it.
_PIP = ["-I", "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]


def wanted(code: str, package: bool) -> list[list[str]]:
    """The pip commands for the folder `code`, without the interpreter; none when it asks for nothing."""
    commands = []
    if os.path.exists(os.path.join(code, FILE)):
        commands.append([*_PIP, "-r", FILE])
    if package:
        commands.append([*_PIP, "."])
    return commands


def install(code: str, package: bool, python: str, settings: PipEnvironment | None = None) -> int:
    """Run the pip commands in the folder `code`; returns the first exit code that is not 0."""
    import subprocess

    for command in wanted(code, package):
        argv = [python, *command]
        if settings is None:
            code_of_pip = subprocess.run(argv, cwd=code, check=False).returncode
        else:
            code_of_pip = _run_masked(argv, code, settings)
        if code_of_pip != 0:
            return code_of_pip
    return 0


def _run_masked(argv: list[str], code: str, settings: PipEnvironment) -> int:
    """Run pip with settings that hold passwords, and pass on what it says without them."""
    import subprocess

    with subprocess.Popen(
        argv, cwd=code, env=settings.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            sys.stdout.buffer.write(settings.masked(line))
            sys.stdout.buffer.flush()
    return pip.returncode


def forget(settings: str) -> None:
    """Remove the settings for pip of a job that installs nothing."""
    if os.path.exists(settings):
        os.unlink(settings)


def install_once(code: str, package: bool, overlay: str, kept: str = "") -> int:
    """As `install`, into the overlay; a host that comes while another one installs waits for it.

    With `kept`, a folder of environments, what can be is installed there, and only once for all jobs.
    """
    from estimator_container.host.preparation.kept_environment import once

    os.makedirs(overlay, exist_ok=True)
    return once(os.path.join(overlay, "lock"), overlay, lambda: _install_into(overlay, code, package, kept))


def _install_into(overlay: str, code: str, package: bool, kept: str) -> int:
    from estimator_container.host.preparation import kept_environment

    path = os.path.join(code, FILE)
    key = None
    if kept and not package and os.path.exists(path):
        with open(path, "rb") as file:
            key = kept_environment.key_of(file.read(), _packages_below())
    if key is None:
        return install(code, package, create_overlay(overlay))
    place = os.path.join(kept, key)
    outcome = kept_environment.ensure(place, lambda place: install(code, package, create_overlay(place)))
    if outcome == 0:
        create_overlay(overlay, place)
        kept_environment.link_programs(place, overlay)
    return outcome


def create_overlay(overlay: str, below: str | None = None) -> str:
    """Make a virtual environment on top of this interpreter's, and of that in `below`; returns its Python."""
    import sysconfig
    import venv

    venv.EnvBuilder(with_pip=False, symlinks=True).create(overlay)
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    own, *others = (
        sysconfig.get_path("purelib", scheme, {"base": each, "platbase": each}) for each in (overlay, below) if each
    )
    others += _packages_below()
    with open(os.path.join(own, "packages_below.pth"), "w", encoding="utf-8") as file:
        # `addsitedir`, not a bare path: the packages below may have .pth files of their own.
        file.writelines(f"import site; site.addsitedir({path!r})\n" for path in others)
    return os.path.join(overlay, "bin", "python")


def _packages_below() -> list[str]:
    """The folders of packages that this interpreter has already."""
    return [path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages")]


def main(argv: list[str]) -> int:
    """Install what the code in the folder `argv[0]` requires; returns pip's exit code.

    The other arguments are `package` if the code is one, the overlay to install into, and the file of pip's settings;
    each may be empty.
    """
    code, package, overlay, settings = argv
    sys.path.append(os.path.abspath(os.path.join(__file__, "../../../..")))
    if overlay:
        os.umask(0o077)  # as all that a job keeps on its user's machine
        from estimator_container.contract.names import KEPT_ENVIRONMENTS

        return install_once(code, package == "package", overlay, os.environ.get(KEPT_ENVIRONMENTS, ""))
    from estimator_container.host.preparation import pip_settings

    with pip_settings.taken(settings) as brought:
        return install(code, package == "package", sys.executable, brought)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
