import pytest
from estimator_container.contract.events import RanksLate
from estimator_container.failures import late_ranks
from estimator_container.failures.late_ranks import LateWatch


class Events:
    def __init__(self):
        self.told, self.said = [], []
        self.still = [("algo-1", 1), ("algo-2", 2)]

    def tell(self, event, words):
        self.told.append(event)
        self.said.append(words)
        del self.still[:1]  # each time one has ended


@pytest.fixture
def events(monkeypatch):
    monkeypatch.setattr(late_ranks, "FIRST_SECONDS", 0.02)
    return Events()


def test_the_late_are_named_again_after_twice_the_time(loop, run_until, events):
    watch = LateWatch(loop, events)
    for _ in range(2):
        watch.begin("train", lambda: list(events.still))
    run_until(lambda: len(events.said) >= 2)
    assert events.said[:2] == [
        "step 'train': ranks 1, 2 on algo-1, algo-2 are still running, and the others have waited 0.02 s",
        "step 'train': rank 2 on algo-2 is still running, and the others have waited 0.04 s",
    ]
    assert events.told[0] == RanksLate("train", 0.02, (1, 2), ("algo-1", "algo-2"))


def test_nobody_is_named_once_all_have_ended(loop, run_until, events):
    watch = LateWatch(loop, events)
    watch.begin("one", list)
    watch.end()
    over = []
    loop.after(0.1, lambda: over.append(True))
    run_until(lambda: over)
    assert events.said == []


def test_a_step_after_another_begins_anew(loop, run_until, events):
    watch = LateWatch(loop, events)
    watch.begin("one", list)
    watch.end()
    watch.begin("two", lambda: [("algo-2", None)])
    run_until(lambda: events.said)
    assert events.said == ["step 'two': algo-2 is still running, and the others have waited 0.02 s"]


def test_many_are_counted():
    said = late_ranks.sentence(RanksLate("train", 10, range(11), ["algo-1"]))
    assert said.startswith("step 'train': ranks 0, 1, 2, 3, 4, 5, 6, 7 and 3 more on algo-1 are still running, and")
