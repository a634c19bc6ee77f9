import pytest

from estimator_sdk import Estimator, TrainingInput
from estimator_sdk.errors import InvalidArgument

SHARES = TrainingInput("s3://bucket/train", distribution="ShardedByS3Key")


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Plans a job whose channels are to be on the nodes' own disks."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "train.py").write_text("print(1)")

    def planned(scratch, inputs, **arguments):
        options = {} if scratch is None else {"local_scratch": scratch}
        given = {"instance_type": "slurm", "slurm": options, **arguments}
        return Estimator(entry_point=str(tmp_path / "train.py"), **given).plan(inputs, job_name="digits")

    return planned


@pytest.mark.parametrize("scratch", ["/scratch", "SLURM_TMPDIR"])
def test_what_comes_from_a_store_is_fetched_to_each_node(plan, scratch):
    planned = plan(scratch, {"train": "s3://bucket/train"})
    assert planned.local_scratch == scratch and f"fetched to {scratch} of each node" in str(planned)
    assert "local_scratch" not in planned.script and "local-scratch" not in planned.script


@pytest.mark.parametrize("is_file", [True, False])
def test_a_site_may_say_it_for_all_jobs_and_those_without_such_channels_go_without(plan, tmp_path, is_file):
    defaults = tmp_path / "config" / "estimator-sdk" / "slurm.toml"
    defaults.parent.mkdir(parents=True)
    defaults.write_text('local_scratch = "/scratch"')
    source = f"file://{tmp_path}" if is_file else "s3://bucket/train"
    assert plan(None, {"train": source}).local_scratch == (None if is_file else "/scratch")


@pytest.mark.parametrize(
    ("scratch", "inputs", "arguments", "words"),
    [
        ("/scratch", None, {}, "no channel is fetched.*; leave it out"),
        ("/scratch", {"train": SHARES}, {"spare_hosts": 1}, r"inputs\['train'\] is a share for each host, and a spare"),
        ("HOME/tmp", {"train": SHARES}, {}, "must be an absolute path, such as '/scratch', or the name of a variable"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused(plan, scratch, inputs, arguments, words):
    with pytest.raises(InvalidArgument, match=words) as refused:
        plan(scratch, inputs, **arguments)
    assert refused.value.argument == "slurm['local_scratch']"


def test_the_folder_that_nodes_share_is_no_disk_of_theirs(plan, tmp_path):
    with pytest.raises(InvalidArgument, match="is the folder that the nodes share"):
        plan(f"{tmp_path}/home/../home/scratch", {"train": "s3://bucket/train"})
