import pytest

from estimator_sdk.backends.slurm import site
from estimator_sdk.backends.slurm.options import SlurmOptions
from estimator_sdk.errors import InvalidArgument


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """A project, which is the current folder, and the user's configuration."""
    (tmp_path / "project").mkdir()
    (tmp_path / "config" / "estimator-sdk").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "project" / "slurm.toml", tmp_path / "config" / "estimator-sdk" / "slurm.toml"


def test_without_a_file_a_job_has_what_it_says():
    assert site.chosen({"account": "lab"}) == (SlurmOptions(account="lab"), None)


def test_a_job_counts_more_than_the_defaults(folders):
    _, of_user = folders
    of_user.write_text('account = "lab"\npartition = "gpu"\n[sbatch_options]\nwckey = "a"\ncontiguous = true\n')
    options, path = site.chosen({"partition": "cpu", "sbatch_options": {"wckey": "b"}})
    assert path == of_user
    assert options == SlurmOptions(account="lab", partition="cpu", sbatch_options={"wckey": "b", "contiguous": True})


def test_the_project_counts_instead_of_the_user(folders):
    of_project, of_user = folders
    of_user.write_text('account = "lab"')
    of_project.write_text('qos = "low"')
    assert site.chosen({}) == (SlurmOptions(qos="low"), of_project)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("partition =", "cannot be read: Invalid value"),
        ('partitoin = "x"', "did you mean 'partition'"),
        ("\xff", "read"),
    ],
)
def test_a_file_that_is_wrong_is_named(folders, text, words):
    of_project, _ = folders
    of_project.write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidArgument, match=words) as refused:
        site.chosen({})
    assert str(of_project) in str(refused.value)
