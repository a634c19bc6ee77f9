"""Run a Python script or module as a rank of an MPI world, so that its failure ends it at once.

`script_runner.py script.py ARGS…` or `script_runner.py -m module ARGS…` behaves as `python -X faulthandler` would, but
for one thing: after an uncaught exception or a failing `sys.exit`, the process ends without the handlers that
run at exit. One of those is MPI_Finalize, which would wait for the other ranks, which wait for this one.
"""

from __future__ import annotations

import _frozen_importlib_external as importing
import atexit
import contextlib
import faulthandler
import os
import runpy
import signal
import sys
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from estimator_container.ranks.own_stacks import OwnStacks

STACKS_VARIABLE = "ESTIMATOR_STACKS"  # the folder where a rank leaves its stacks, taken back before the script starts
WEIGHTS_VARIABLE = "ESTIMATOR_WEIGHTS"  # the socket that takes what `drift` sees of a rank's weights; taken back too
END_OF_SCRIPT = ".end"  # what the name of the file gets then
LONE_SCRIPT = os.path.join(os.path.dirname(__file__), "lone_script.py")  # what runs a script where there is no world


def _stop_vouching_in_children() -> None:
    """The files that say that this rank lives are not its children's to keep open (`ranks_alive`)."""
    for name in os.listdir("/proc/self/fd"):
        path = _path_of(int(name))
        if os.path.basename(os.path.dirname(path)) == "alive":
            os.set_inheritable(int(name), False)  # nor those of a program that it starts
            os.register_at_fork(
                after_in_child=lambda fd=int(name), path=path: os.close(fd) if _path_of(fd) == path else None
            )


def _leave_stacks_when_asked() -> OwnStacks | None:
    """Write down where the threads stand when the toolkit asks."""
    folder = os.environ.pop(STACKS_VARIABLE, None)
    if folder is None:
        return None
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "own_stacks.py")
    beside = types.ModuleType("own_stacks")  # which no file of the script's can be taken for
    importing.SourceFileLoader("own_stacks", path).exec_module(beside)
    own_stacks: OwnStacks = beside.OwnStacks(folder)
    # The first that is registered is the last to be called: after it, only MPI waits for anybody.
    atexit.register(_say_that_it_has_ended, own_stacks.path, os.getpid())
    return own_stacks


def _say_that_it_has_ended(path: str, pid: int) -> None:
    if os.getpid() == pid:  # and no child of it
        with contextlib.suppress(OSError):
            os.rename(path, path + END_OF_SCRIPT)


class _AtImport:
    """Has a part of the toolkit loaded once a script imports what that part is for; before that nothing of it is."""

    def __init__(self, own_stacks: OwnStacks | None) -> None:
        """`own_stacks` is what tells where this rank stands."""
        self._own_stacks = own_stacks
        self._socket = os.environ.pop(WEIGHTS_VARIABLE, None)
        self._awaited = {"horovod", "keras", "tensorflow", "torch"}

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """As a finder of modules that finds none."""
        if self._own_stacks is not None and name in self._own_stacks.have_threads:
            self._own_stacks.answer()
        if name not in self._awaited:
            return
        self._awaited.remove(name)
        if name == "horovod":
            import estimator_container.horovod_keras3
        if name == "torch" and self._own_stacks is not None:
            from estimator_container.ranks import flight_recorder

            flight_recorder.tell_beside(self._own_stacks)
        if self._socket is not None:
            import estimator_container.drift

            estimator_container.drift.install(self._socket)


def _path_of(fd: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return ""


def _run_program(argv: list[str]) -> None:
    """Run the program that `argv` names in this interpreter, as its main module."""
    # A module of its own that stays: those that `runpy` makes for its public functions are gone when they
    # return, under the feet of threads and exit handlers.
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    is_module = argv[0] == "-m"
    path = os.path.abspath(argv[0])
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(path)
    if is_module:
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
    """The same with a traceback of the script itself."""
    ours = {__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib._bootstrap>"}
    shown = error.__traceback__
    while shown is not None and shown.tb_frame.f_code.co_filename in ours:
        shown = shown.tb_next
    return error.with_traceback(shown)


def _show(error: BaseException) -> None:
    """Call `sys.excepthook` as the interpreter does, which also shows what a hook raises (PyErr_PrintEx of CPython)."""
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


def _advise(error: BaseException) -> None:
    """Say what to write today in the place of an older word, unless whoever shows the exceptions sees to it."""
    if sys.excepthook is sys.__excepthook__ and not {"keras", "tensorflow"}.isdisjoint(sys.modules):
        from estimator_container.horovod_keras3.dropped import advice

        line = advice(error)
        if line is not None:
            print(line, file=sys.stderr)


def _exit_code(exit: SystemExit) -> int:
    if exit.code is None or isinstance(exit.code, int):
        return (exit.code or 0) & 0xFF
    print(exit.code, file=sys.stderr)
    return 1


def _end_now(code: int) -> None:
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _end_by(error: BaseException) -> None:
    try:
        _show(error)
    except SystemExit as exit:  # of a hook
        _end_now(_exit_code(exit))
    _advise(error)
    _end_now(128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1)


def main() -> None:
    """The command line: exits as `python` would for the same program."""
    # Open MPI's own handler, which it leaves out where there is one, calls backtrace(3). That allocates memory, so a
    # rank that crashes in malloc, as with a damaged heap it does, would wait for itself for ever.
    faulthandler.enable()
    _stop_vouching_in_children()
    sys.meta_path.insert(0, _AtImport(_leave_stacks_when_asked()))
    try:
        _run_program(sys.argv[1:])
    except SystemExit as exit:
        code = _exit_code(exit)
        if code != 0:
            _end_now(code)
        return
    except BaseException as raised:
        error = _without_our_frames(raised)
    else:
        return
    _end_by(error)  # while no exception is handled, which would be the context of what a hook raises


if __name__ == "__main__":
    main()
