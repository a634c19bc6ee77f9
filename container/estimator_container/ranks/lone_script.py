"""Run a Python script or module as `python` would, and write down where its threads are when the toolkit asks.

`lone_script.py script.py ARGS…` or `lone_script.py -m module ARGS…`: where there is no world, each host runs its
script by this; see `script_runner` for the ranks of a world. A host runs it by its path. It imports nothing that the
interpreter does not have loaded or built in, because every such script pays for it.
"""

from __future__ import annotations

import _frozen_importlib_external as importing
import os
import sys

STACKS_VARIABLE = "ESTIMATOR_STACKS"  # as `script_runner` has it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from estimator_container.ranks.own_stacks import OwnStacks


def _leave_stacks_when_asked() -> OwnStacks | None:
    folder = os.environ.pop(STACKS_VARIABLE, None)
    if folder is None:
        return None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own_stacks.py")
    beside = type(sys)("own_stacks")  # of the toolkit nothing is loaded by its name
    importing.SourceFileLoader("own_stacks", path).exec_module(beside)
    own_stacks: OwnStacks = beside.OwnStacks(folder)
    return own_stacks


class _AtFramework:
    """Does what is due once a script imports a framework, as to count its steps; no more is loaded before that."""

    def __init__(self, own_stacks: OwnStacks | None) -> None:
        """`own_stacks` is what tells where the script stands."""
        self._own_stacks = own_stacks
        self._is_done = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """As a finder of modules that finds none."""
        if self._own_stacks is not None and name in self._own_stacks.have_threads:
            self._own_stacks.answer()
        if name in ("keras", "tensorflow", "torch") and not self._is_done:
            self._is_done = True
            try:
                from estimator_container import drift
            except ImportError:  # the script's Python has no toolkit: it trains all the same
                return
            drift.install(None)


def run(argv: list[str]) -> None:
    """Run the program that `argv` names in this interpreter, as its main module."""
    sys.meta_path.insert(0, _AtFramework(_leave_stacks_when_asked()))
    is_module = argv[0] == "-m"
    path = os.path.abspath(argv[0])
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(path)
    main = type(sys)("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    if is_module:
        import runpy

        sys.argv = ["-m", *argv[2:]]
        # What the interpreter itself calls for `-m`.
        runpy._run_module_as_main(argv[1])  # type: ignore[attr-defined]
    else:
        sys.argv = argv
        main.__dict__["__file__"] = path
        main.__dict__["__loader__"] = importing.SourceFileLoader("__main__", path)
        with open(path, "rb") as file:
            source = compile(file.read(), path, "exec", dont_inherit=True)
        exec(source, main.__dict__)


def _without_our_frames(error: BaseException) -> BaseException:
    shown = error.__traceback__
    while shown is not None and shown.tb_frame.f_code.co_filename == __file__:
        shown = shown.tb_next
    return error.with_traceback(shown)


def _show(error: BaseException) -> None:
    """Call `sys.excepthook` as the interpreter does, which also shows what a hook raises; see `script_runner`."""
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
        return
    except SystemExit:
        raise
    except BaseException as raised:
        of_hook = _without_our_frames(raised)
    print("Error in sys.excepthook:", file=sys.stderr)
    sys.__excepthook__(type(of_hook), of_hook, of_hook.__traceback__)
    print("\nOriginal exception was:", file=sys.stderr)
    sys.__excepthook__(type(error), error, error.__traceback__)


def main() -> None:
    """The command line: shows an exception and ends by it as `python` does for the same program."""
    try:
        run(sys.argv[1:])
        return
    except SystemExit:
        raise
    except BaseException as raised:
        error = _without_our_frames(raised)
    _show(error)  # while no exception is handled, which would be the context of what a hook raises
    sys.excepthook = lambda *_: None  # it has been shown
    raise error


if __name__ == "__main__":
    main()
