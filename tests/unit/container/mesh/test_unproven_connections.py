from estimator_container.mesh import unproven_connections
from estimator_container.mesh.unproven_connections import UnprovenConnections


class Connection:
    """A link, as far as it is of interest here."""

    def __init__(self):
        self.closed = False

    def close(self):
        self.closed = True


def open_ones(links):
    return [at for at, link in enumerate(links) if not link.closed]


def test_of_too_many_the_one_that_came_first_is_turned_away(loop):
    met, links = UnprovenConnections(loop, 3), [Connection() for _ in range(5)]
    for link in links:
        met.meet(link)
    assert open_ones(links) == [2, 3, 4]
    assert len(met) == 3


def test_who_has_proved_itself_takes_no_place_and_is_not_turned_away(loop):
    met, links = UnprovenConnections(loop, 2), [Connection() for _ in range(5)]
    for link in links:
        met.meet(link)
        if link is links[0]:
            met.know(link)
    assert open_ones(links) == [0, 3, 4]


def test_each_has_its_own_deadline_and_a_crowd_has_one_timer(loop, run_until, monkeypatch):
    monkeypatch.setattr(unproven_connections, "SECONDS", 0.01)
    met, links, timers = UnprovenConnections(loop, 1000), [], []
    after = loop.after
    monkeypatch.setattr(loop, "after", lambda *args: (timers.append(args), after(*args))[1])
    for _ in range(3):
        for _ in range(100):
            links.append(Connection())
            met.meet(links[-1])
        run_until(lambda: all(link.closed for link in links))
    assert len(met) == 0
    assert len(timers) < 100


def test_at_the_end_all_are_turned_away(loop):
    met, links = UnprovenConnections(loop, 10), [Connection() for _ in range(5)]
    for link in links:
        met.meet(link)
    met.close()
    assert open_ones(links) == []
    assert len(met) == 0
