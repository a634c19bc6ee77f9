import json

import pytest
from estimator_container.agents.channels.channel import ChannelTask
from estimator_container.agents.channels.fetch import fetch
from estimator_container.agents.channels.source import open_source

HOSTS = ["algo-1", "algo-2", "algo-3"]


@pytest.fixture
def uri(tmp_path):
    """Objects of several sizes, and a manifest that says one of them twice."""
    for number in range(7):
        path = tmp_path / "store" / f"{number}" / "part"
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes(number * 100))
    names = [f"{number}/part" for number in (*range(7), 3)]
    (tmp_path / "store" / "manifest").write_text(json.dumps([{"prefix": f"file://{tmp_path}/store/"}, *names]))
    return f"file://{tmp_path}/store"


def found(tmp_path, uri, wanted, is_manifest=False, seed=None):
    """What each host gets, where some are wanted."""
    target = tmp_path / "-".join(wanted or ["all"])
    task = ChannelTask("train", uri, str(target), is_sharded=True, is_manifest=is_manifest, seed=seed)
    fetch(task, open_source(task), HOSTS, "symbolic", lambda size, objects: None, wanted)
    return {host.name: sorted(str(path.relative_to(host)) for path in host.rglob("part")) for host in target.iterdir()}


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("of_manifest", [False, True])
def test_shares_that_are_fetched_apart_are_those_that_are_fetched_together(tmp_path, uri, of_manifest, seed):
    if of_manifest:
        uri += "/manifest"
    else:
        (tmp_path / "store" / "manifest").unlink()
    together = found(tmp_path, uri, None, of_manifest, seed)
    apart = found(tmp_path, uri, HOSTS[:2], of_manifest, seed) | found(tmp_path, uri, HOSTS[2:], of_manifest, seed)
    assert together == apart
    assert sorted(part for share in apart.values() for part in share) == [f"{number}/part" for number in range(7)]
