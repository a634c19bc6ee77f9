"""Functions as jobs on hosts that are processes: what is refused, what comes back, what is raised."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest
from estimator_container.contract.reserved import enabled_by

from estimator_sdk import EstimatorError, HorovodRunner, InvalidArgument, JobFailed, list_jobs, remote
from estimator_sdk.functions.call import Call
from estimator_sdk.functions.on_host import host, payload
from estimator_sdk.spec.distributions import NAMES, options_of
from estimator_sdk.values.home import bundles_folder, jobs_folder
from tests.waiting import SECONDS

LOCAL = {"backend": "process"}
lock = threading.Lock()


class OddDigit(Exception):
    """An exception of the user's own."""


class Stubborn(Exception):
    def __reduce__(self):
        raise TypeError("this one stays")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


GROUPS = [{"InstanceType": "ml.m5.large", "InstanceCount": 2, "InstanceGroupName": "a"}]


def train(epochs, rate=0.1):
    return epochs * rate


def uses_a_lock():
    return lock


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda: HorovodRunner(np=0), "np must be a whole number of processes, .*, not 0; write np=2 or np=-2"),
        (lambda: HorovodRunner(np="2"), "np must be a whole number of processes, .*, not '2'"),
        (lambda: HorovodRunner(np=True), "np must be a whole number"),
        (lambda: HorovodRunner(np=3, instance_count=2), "np=3 processes do not spread evenly .*such as np=4"),
        (lambda: HorovodRunner(np=-2, instance_count=2), "np=-2 runs 2 processes on this machine, where instance_cou"),
        (lambda: HorovodRunner(np=-2, instance_type="ml.m5.large"), "np=-2 runs 2 .*'ml.m5.large' has no effect"),
        (lambda: HorovodRunner(np=-2, instance_groups=[]), r"np=-2 runs 2 .*instance_groups=\[\] has no effect"),
        (lambda: HorovodRunner(np=2, instance_cuont=2), "no argument 'instance_cuont'; did you mean 'instance_count'"),
        (lambda: HorovodRunner(np=2, driver_log_verbositi="all"), "did you mean 'driver_log_verbosity'"),
        (lambda: HorovodRunner(np=2, driver_log_verbosity="al"), "'al' is not known; did you mean 'all'"),
        (lambda: HorovodRunner(np=2, distribution={}), "takes no distribution: it is an MPI world of np processes"),
        (lambda: HorovodRunner(np=2, instance_count=0), "instance_count must be at least 1, not 0"),
        (lambda: HorovodRunner(np=2, max_run="long"), "max_run"),
        (lambda: HorovodRunner(np=2, entry_point="train.py"), "takes no entry_point: the function is what runs"),
        (lambda: remote(command=["x"]), "remote takes no command: the function is what runs"),
        (lambda: remote(arguments=["--lr", "1"]), "remote takes no arguments: give the function its arguments"),
        (lambda: remote(inputs=5), "inputs"),
        (lambda: HorovodRunner(np=3, instance_groups=GROUPS), "np=3 processes do not spread evenly over .*2 hosts"),
        (lambda: HorovodRunner(np=2, hyperparameters={}), "takes no hyperparameters: give the function its arguments"),
        (lambda: HorovodRunner(np=2).run(train, epoch=3), r"train\(\) has no argument 'epoch'; did you mean 'epochs'"),
        (lambda: HorovodRunner(np=2).run(train), "cannot be called this way: missing a required argument: 'epochs'"),
        (lambda: HorovodRunner(np=2).run("train"), "'train' is not a function"),
        (lambda: HorovodRunner(np=2).run(uses_a_lock), "the variable 'lock' of uses_a_lock.. holds a _thread.lock"),
        (lambda: HorovodRunner(np=2).run(train, epochs=lock), "'epochs' of train.. holds a _thread.lock: .*pass what"),
        (lambda: remote(instance_cuont=2), "remote has no argument 'instance_cuont'; did you mean 'instance_count'"),
        (lambda: remote(source_dir="."), "takes no source_dir: .* into dependencies"),
        (lambda: remote(instance_type="ml.m5.larg"), "instance_type 'ml.m5.larg' is not a known instance type"),
        (lambda: remote(**LOCAL)(3), "remote decorates a function, not 3"),
        (lambda: remote(**LOCAL)(train)(1, 2, 3), "too many positional arguments; its arguments are"),
        (lambda: remote(**LOCAL)(train)(lock), "the variable 'epochs' of train.. holds a _thread.lock"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_started(wrong, sentence):
    with pytest.raises(InvalidArgument, match=sentence) as refused:
        wrong()
    assert "\n" not in str(refused.value)
    assert not jobs_folder().exists() and not bundles_folder().exists()


def test_np_is_spread_over_the_hosts():
    def where():
        import os

        return os.environ["SM_CURRENT_HOST"], os.environ["WORLD_SIZE"], os.environ["LOCAL_WORLD_SIZE"]

    assert HorovodRunner(np=2, instance_count=2, **LOCAL).run(where) == ("algo-1", "2", "1")
    assert HorovodRunner(np=-2, **LOCAL).run(where) == ("algo-1", "2", "2")
    assert [len(job._started.record().hosts) for job in list_jobs()] == [1, 2]


def test_verbosity_chooses_whose_lines_are_shown(capsys):
    def say():
        import os

        from mpi4py import MPI

        print("rank", os.environ["RANK"], MPI.COMM_WORLD.size, flush=True)

    HorovodRunner(np=-2, driver_log_verbosity="all", **LOCAL).run(say)
    shown = capsys.readouterr().out
    assert "[1,0]<stdout>:rank 0 2\n" in shown and "[1,1]<stdout>:rank 1 2\n" in shown
    HorovodRunner(np=-2, **LOCAL).run(say)
    shown = capsys.readouterr().out
    assert "[1,0]<stdout>:rank 0 2\n" in shown and "rank 1" not in shown


def test_an_exception_of_any_rank_is_raised_here_as_what_it_was_with_the_remote_traceback(tmp_path):
    def fail(at):
        import os

        if os.environ["SM_CURRENT_HOST"] == at:
            raise OddDigit("no such digit", at)

    for hosts, distribution in ((2, {"mpi": {"enabled": True}}), (2, None), (1, None)):
        output = str(tmp_path / f"{hosts}{bool(distribution)}")
        decorated = remote(instance_count=hosts, distribution=distribution, output_path=f"file://{output}", **LOCAL)(
            fail
        )
        with pytest.raises(OddDigit) as raised:
            decorated(f"algo-{hosts}")
        assert raised.value.args == ("no such digit", f"algo-{hosts}")
        cause = raised.value.__cause__
        assert isinstance(cause, JobFailed) and cause.verdict.host == f"algo-{hosts}"
        assert (cause.verdict.kind, cause.verdict.exit_code) == ("exception", 1)
        shown = "".join(traceback.format_exception(raised.value))
        assert 'raise OddDigit("no such digit", at)' in shown and ", in fail\n" in shown
        assert "run_function.py" not in cause.verdict.detail and "host.py" not in cause.verdict.detail


@pytest.mark.parametrize(
    ("distribution", "ranks"),
    [
        ({"torch_distributed": {"enabled": True, "processes_per_host": 2}}, 4),
        ({"multi_worker_mirrored_strategy": {"enabled": True}}, 2),
    ],
)
def test_in_every_world_rank_0_alone_returns_and_the_rank_that_raises_is_heard(distribution, ranks):
    @remote(instance_count=2, distribution=distribution, **LOCAL)
    def rank(failing):
        import os
        import time
        from pathlib import Path

        own = int(os.environ["RANK"])
        if own == failing:
            raise OddDigit(own)
        value = Path(os.environ["SM_OUTPUT_DATA_DIR"], "function-return-value.payload")
        while os.environ["SM_CURRENT_HOST"] == "algo-1" and own != 0 and failing is None and not value.exists():
            time.sleep(0.01)
        return own

    assert rank(None) == 0
    with pytest.raises(OddDigit) as raised:
        rank(ranks - 1)
    assert raised.value.args == (ranks - 1,)


@pytest.mark.parametrize("variable", ["RANK", "OMPI_COMM_WORLD_RANK"])
def test_a_rank_of_a_world_around_the_caller_is_none_of_the_job_s(variable, monkeypatch):
    def where(fail):
        import os

        if fail:
            raise OddDigit(os.environ["SM_CURRENT_HOST"])
        return os.environ["SM_CURRENT_HOST"]

    monkeypatch.setenv(variable, "1")
    call = remote(instance_count=2, **LOCAL)(where)
    assert call(False) == "algo-1"
    with pytest.raises(OddDigit):
        call(True)


def test_an_exception_that_cannot_be_pickled_is_job_failed_with_its_traceback():
    def fail():
        raise Stubborn("as a mule")

    with pytest.raises(JobFailed, match="exited with code 1: .*Stubborn: as a mule") as failed:
        remote(**LOCAL)(fail)()
    assert 'raise Stubborn("as a mule")' in failed.value.verdict.detail


def test_an_exit_code_is_that_of_the_rank():
    def leave(code):
        sys.exit(code)

    with pytest.raises(JobFailed) as failed:
        remote(**LOCAL)(leave)(7)
    assert (failed.value.verdict.kind, failed.value.verdict.exit_code) == ("exit_code", 7)
    with pytest.raises(EstimatorError, match="the function has not returned, though rank 0 ended with code 0"):
        remote(**LOCAL)(leave)(0)


def test_a_return_value_that_cannot_be_pickled_names_what_it_holds():
    def make():
        import threading

        return {"model": [threading.Lock()]}

    with pytest.raises(TypeError, match=r"make\(\) returned .*\"return value\['model'\]\[0\]\" holds a _thread.lock"):
        remote(**LOCAL)(make)()


def test_a_function_that_calls_itself_and_another_starts_one_job():
    @remote(**LOCAL)
    def double(number):
        return 2 * number

    @remote(**LOCAL)
    def power(number):
        """Two to the number."""
        return 1 if number == 0 else double(power(number - 1))

    assert power(5) == 32 and len(list_jobs()) == 1
    assert (power.__name__, power.__doc__, power.__wrapped__(0)) == ("power", "Two to the number.", 1)


def test_a_dependency_is_imported_by_the_function(tmp_path):
    (tmp_path / "helpers_of_mine.py").write_text("def answer():\n    return 42\n")

    @remote(dependencies=[tmp_path / "helpers_of_mine.py"], **LOCAL)
    def ask():
        import helpers_of_mine

        return helpers_of_mine.answer()

    assert ask() == 42


def test_a_channel_reaches_the_function(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("1")

    @remote(inputs={"train": f"file://{tmp_path / 'data'}"}, **LOCAL)
    def names():
        import os
        from pathlib import Path

        return [path.name for path in Path(os.environ["SM_CHANNEL_TRAIN"]).iterdir()]

    assert names() == ["a"]


def test_what_returns_nothing_because_it_was_stopped_is_an_error():
    @remote(max_run=1, **LOCAL)
    def sleep():
        import time

        time.sleep(600)

    with pytest.raises(
        EstimatorError, match="the function returned nothing, because its job did not complete: .*MaxRuntimeExceeded"
    ):
        sleep()


def test_a_module_of_the_users_own_travels_with_its_function(tmp_path):
    """As somebody does it who keeps the function in a file beside the script."""
    (tmp_path / "mine.py").write_text(
        "base = 40\ndef add(number):\n    return helper(number)\ndef helper(number):\n    return base + number\n"
    )
    (tmp_path / "script.py").write_text(
        "import sys, mine\nfrom estimator_sdk import HorovodRunner\n"
        "sys.stdout = sys.stderr\nvalue = HorovodRunner(np=-1, backend='process').run(mine.add, number=2)\n"
        "print(value, file=sys.__stdout__)\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "42\n", done.stderr


def code_of(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    Call(train, (2,), {}).write(folder)
    return folder


@pytest.mark.parametrize(("member", "value"), [("python", "3.0"), ("cloudpickle", "1.0")])
def test_a_host_of_other_versions_refuses_the_function_before_it_is_unpickled(tmp_path, member, value):
    folder = code_of(tmp_path)
    path = folder / "estimator_function" / host.FUNCTION_FILE
    line, _, _ = path.read_bytes().partition(b"\n")
    path.write_bytes(json.dumps({**json.loads(line), member: value}).encode() + b"\n" + b"no pickle")
    done = subprocess.run(
        [sys.executable, "run_function.py"], cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("the function was pickled by ") and done.stderr.count("\n") == 1


def test_a_host_without_cloudpickle_and_without_the_sdk_runs_the_function(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-S", "run_function.py"]  # -S: without site-packages
    environment = {"SM_OUTPUT_DATA_DIR": str(out)}
    subprocess.run(command, cwd=code_of(tmp_path), env=environment, check=True, timeout=SECONDS)
    assert payload.unpack(host.VALUE, (out / host.VALUE_FILE).read_bytes()) == 0.2


def forks(raises):
    import os
    import time

    own, child = os.getpid(), os.fork()
    while not child and os.getppid() == own:  # what it leaves comes last
        time.sleep(0.01)
    if raises and not child:
        raise ValueError("in the child")
    return child


@pytest.mark.parametrize("raises", [False, True])
def test_a_child_that_the_function_has_forked_leaves_neither_a_value_nor_an_exception(tmp_path, raises):
    (folder := tmp_path / "code").mkdir()
    Call(forks, (raises,), {}).write(folder)
    out = tmp_path / "out"
    command, variables = [sys.executable, "run_function.py"], {"SM_OUTPUT_DATA_DIR": str(out)}
    subprocess.run(command, cwd=folder, env=variables, check=True, timeout=SECONDS, capture_output=True)
    assert [path.name for path in out.iterdir()] == [host.VALUE_FILE]
    assert payload.unpack(host.VALUE, (out / host.VALUE_FILE).read_bytes()) > 0


def test_a_return_value_that_was_damaged_is_refused(tmp_path, monkeypatch):
    from estimator_sdk.functions import outcome

    monkeypatch.setattr(outcome, "_member", lambda uri, name: payload.pack(host.VALUE, 1)[:-1])
    with pytest.raises(EstimatorError, match="has run, but its return value cannot be read here: .*checksum is wrong"):
        remote(**LOCAL)(train)(1)


def test_the_hosts_are_told_where_every_distribution_puts_the_rank(tmp_path):
    Call(train, (3,), {}).write(tmp_path)
    told = json.loads((tmp_path / "estimator_function" / host.RANKS_FILE).read_text())
    assert told == {enabled_by(name): options_of(name).rank_variable for name in NAMES}
    assert told["sagemaker_mpi_enabled"] == "OMPI_COMM_WORLD_RANK"
