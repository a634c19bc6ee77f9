"""How a host passes on what is asked: from a file to the pages of its ranks, and back after the time."""

import json
from pathlib import Path

import pytest
from estimator_container.contract.names import Layout
from estimator_container.host.windows import Windows
from estimator_container.runtime.loop import Loop
from estimator_container.training import page

from tests.waiting import SECONDS


class Asked:
    """A host with two ranks."""

    def __init__(self, folder):
        self.loop, self.layout, self.begun = Loop(), Layout(str(folder)), 0
        for each in ("input/config", "output/logs"):
            (folder / each).mkdir(parents=True)
        self.pages = folder / "pages"
        self.pages.mkdir()
        (folder / "place").write_text(str(self.pages))
        self.kept = [page.open_page(str(folder / "place"), rank) for rank in ("0", "1")]
        self.windows = Windows(self.loop, self._with_files, self.layout, str(self.pages), self._begin)
        self.hangs, self._asked = False, []

    def _with_files(self, work, then):
        if self.hangs:
            self._asked.append(lambda: then(work()))
        else:
            then(work())

    def answer(self):
        """As a file system does that has hung."""
        asked, self._asked = self._asked, []
        for each in asked:
            each()
        return len(asked)

    def _begin(self):
        self.begun += 1

    def ask(self, text):
        Path(self.layout.timeline_request).write_text(text if isinstance(text, str) else json.dumps(text))
        self.windows.look()

    def told(self):
        return {each[page.WINDOW] for each in self.kept}


@pytest.fixture
def host(tmp_path):
    return Asked(tmp_path)


def test_the_ranks_are_told_of_its_begin_and_of_its_end(host, tmp_path):
    host.ask({"number": 7, "seconds": 0.01})
    assert (host.told(), host.begun) == ({7}, 1)
    told = json.loads((tmp_path / "output" / "logs" / "timelines" / "7.json").read_text())
    assert told == {"seconds": 0.01, "ranks": [0, 1]}
    assert not (tmp_path / "input" / "config" / "timeline").exists()
    host.loop.run_until(lambda: host.told() == {0}, SECONDS)
    assert host.told() == {0}


def test_a_second_one_waits_for_the_end_of_the_first(host):
    host.ask({"number": 7, "seconds": 0.01})
    host.ask({"number": 8, "seconds": 60})
    assert host.told() == {7}
    host.loop.run_until(lambda: host.told() == {0}, SECONDS)
    host.windows.look()
    assert host.told() == {8}
    host.windows.close()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"number": 7}',
        '{"number": 7, "seconds": -1}',
        '{"number": 7, "seconds": 1e9}',
        '{"number": 1e400, "seconds": 1}',
        '{"number": 9223372036854775808, "seconds": 1}',
        "[" * 4000,
    ],
)
def test_what_is_no_request_is_passed_over_and_is_not_in_the_way_of_the_next(host, text):
    host.ask(text)
    assert (host.told(), host.begun) == ({0}, 0)
    assert not Path(host.layout.timeline_request).exists()


def test_a_page_stays_as_long_as_it_was_and_others_are_passed_over(host):
    (host.pages / "steps-x").write_bytes(b"mine")
    size = (host.pages / "steps-0").stat().st_size
    host.ask({"number": 7, "seconds": 60})
    host.windows.close()
    assert (host.pages / "steps-0").stat().st_size == size
    assert (host.pages / "steps-x").read_bytes() == b"mine"


def test_a_file_system_that_hangs_is_asked_once_and_no_window_begins_after_the_end(host):
    host.hangs = True
    host.ask({"number": 7, "seconds": 60})
    host.windows.look()
    assert host.answer() == 1 and host.told() == {7}
    host.windows.close()
    other = Asked(Path(host.layout.base) / "other")
    other.hangs = True
    other.ask({"number": 8, "seconds": 60})
    other.windows.close()
    assert other.answer() == 1 and (other.told(), other.begun) == ({0}, 0)
