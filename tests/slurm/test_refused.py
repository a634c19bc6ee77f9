"""What this cluster cannot do for a job: it is said before anything is kept or waits, with what to do."""

from __future__ import annotations

import pytest

from estimator_sdk import Estimator, list_jobs
from estimator_sdk.errors import BackendError, InvalidArgument


@pytest.fixture
def submit(tmp_path, slurm, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("print(1)")

    def submitted(**arguments: object) -> None:
        given = {"instance_type": "slurm", "instance_count": 1, **arguments}
        Estimator(entry_point=str(tmp_path / "train.py"), **given).fit(wait=False)

    return submitted


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodelist": "n99"}, "Invalid node name specified; name nodes that this cluster has: n1, n10, "),
        ({"constraint": "warp"}, "Invalid feature specification; name features that its nodes have"),
        ({"gpus_per_node": 2}, r"Invalid generic resource \(gres\) specification; name devices that its nodes have"),
        ({"reservation": "nope"}, "reservation is invalid; see `scontrol show reservation`"),
        ({"licenses": "matlab:1"}, "Invalid license specification; see `scontrol show licenses`"),
        ({"sbatch_options": {"frob": True}}, "unrecognized option '--frob' .*; `man sbatch` has the long names"),
        ({"sbatch_options": {"begin": "never"}}, r"Invalid --begin specification; .* plan\(\) shows the script"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_what_slurm_refuses_starts_nothing_and_says_what_to_do(submit, options, words):
    with pytest.raises(BackendError, match=f"^sbatch says: .*{words}"):
        submit(slurm=options)
    assert list_jobs() == []


def test_more_than_any_node_has_is_refused(submit):
    with pytest.raises(BackendError, match="configuration is not available; ask for less a node, or name another part"):
        submit(memory=999)
    assert list_jobs() == []


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("instance_type", {"instance_type": "slurm.shrt"}),
        ("slurm['partition']", {"slurm": {"partition": "shrt"}}),
        ("slurm['partition']", {"slurm": {"partition": "debug,shrt"}}),
    ],
    ids=["type", "option", "one-of-two"],
)
def test_a_partition_that_is_not_there_is_refused_with_the_nearest_one(submit, argument, given):
    words = "names the partition 'shrt', which this cluster does not have; did you mean 'short'? Known: debug, other, "
    with pytest.raises(InvalidArgument) as caught:
        submit(**given)
    assert caught.value.argument == argument and str(caught.value).startswith(f"{argument} {words}")
    assert list_jobs() == []


def test_more_nodes_than_a_partition_has_are_refused_for_the_job_would_wait_for_ever(submit):
    with pytest.raises(InvalidArgument, match="needs 5 nodes, .* but partition 'other' has 4, so it would never start"):
        submit(instance_type="slurm.other", instance_count=4, spare_hosts=1)
    assert list_jobs() == []
