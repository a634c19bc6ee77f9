"""How far another host's clock is from the first one's: within half of the shortest way there and back."""

import json
from types import SimpleNamespace

import pytest
from estimator_container.mesh import clocks

SECOND = 1_000_000_000


@pytest.mark.parametrize("ahead", [0, 5 * SECOND, -3 * SECOND // 2])
def test_the_offset_is_that_of_the_answer_that_was_quickest(tmp_path, monkeypatch, ahead):
    """Ways of several lengths, of which a question takes all and its answer none."""
    now, ways = [1700 * SECOND], iter([40, 2, 30, 8, 50, 60, 70, 80])
    monkeypatch.setattr(clocks, "time", SimpleNamespace(time_ns=lambda: now[0]))
    asked = []
    path = tmp_path / "timelines" / "clocks.json"
    offsets = clocks.ClockOffsets(["algo-2"], str(path), lambda host, text: asked.append((host, text)))
    offsets.begin()
    while asked:
        host, text = asked.pop()
        now[0] += next(ways) * 1_000_000
        offsets.answered(host, text, str(now[0] + ahead))
    found = json.loads(path.read_text())
    assert found == {"algo-2": {"offset": pytest.approx((ahead + 1_000_000) / SECOND), "within": 0.001}}


def test_alone_a_host_asks_nobody(tmp_path):
    clocks.ClockOffsets([], str(tmp_path / "clocks.json"), lambda host, text: pytest.fail(host)).begin()
    assert not list(tmp_path.iterdir())
