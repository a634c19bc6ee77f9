"""What a job on a pool may not ask for: each is refused by name."""

import pytest

from estimator_sdk import Estimator, InvalidArgument


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"hosts": "a", "instance_count": 2}, "instance_count=2 needs 2 machines, but hosts names 1; name more"),
        (
            {"hosts": "a,b", "instance_count": 2, "spare_hosts": 1},
            "instance_count=2 and spare_hosts=1 need 3 machines, but hosts names 2",
        ),
        (
            {"hosts": "a", "instance_type": "slurm"},
            "instance_type is slurm, which asks a scheduler for nodes, but hosts",
        ),
        (
            {"hosts": "a", "image_uri": "b", "entry_point": None},
            "entry_point is missing: on a pool, a script runs in the image",
        ),
        ({"backend": "ssh"}, "hosts is missing, so there is no machine to run on"),
    ],
)
def test_what_a_pool_cannot_do_is_refused_in_a_sentence(tmp_path, monkeypatch, arguments, words):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("")
    with pytest.raises(InvalidArgument, match=words):
        Estimator(**{"entry_point": str(tmp_path / "train.py"), **arguments}).plan()


@pytest.mark.parametrize(("instance_type", "with_gpus"), [("local", False), ("local_gpu", True)])
def test_a_plan_says_how_a_machine_runs_the_image_and_whether_with_gpus(
    tmp_path, monkeypatch, instance_type, with_gpus
):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("")
    given = {"entry_point": str(tmp_path / "train.py"), "hosts": "a", "image_uri": "b"}
    plan = Estimator(**given, instance_type=instance_type).plan()
    assert plan.image == "b"
    assert plan.image_words[:2] == ("docker", "run")
    assert ("--gpus=all" in plan.image_words) is with_gpus
