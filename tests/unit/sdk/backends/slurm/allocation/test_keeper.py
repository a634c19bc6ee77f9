import pytest

from estimator_sdk.backends.slurm.allocation.keeper import NoScratch, made


def test_each_job_has_a_folder_of_its_own_for_this_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_THE_NODE", str(tmp_path))
    first, second = made(str(tmp_path), "digits"), made("OF_THE_NODE", "digits")
    assert first != second and {first.parent, second.parent} == {tmp_path}
    assert [each.stat().st_mode & 0o777 for each in (first, second)] == [0o700] * 2


@pytest.mark.parametrize(
    ("value", "words"),
    [(None, "a variable that names no folder on n3; name one"), ("relative", "names no folder on n3"), ("/proc", "n3")],
)
def test_a_node_that_has_none_is_named(monkeypatch, value, words):
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    monkeypatch.delenv("OF_THE_NODE", raising=False)
    if value is not None:
        monkeypatch.setenv("OF_THE_NODE", value)
    with pytest.raises(NoScratch, match=words):
        made("OF_THE_NODE", "digits")
