"""What a supervisor is told of the end of containers, whatever order the engine tells it in."""

import queue
import threading
import uuid
from types import SimpleNamespace

import pytest
from docker.errors import NotFound
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.docker import container_watch
from estimator_sdk.backends.docker.container_watch import ContainerWatch
from tests.waiting import SECONDS


class Engine:
    """An engine that tells of what a test lets it."""

    def __init__(self, memory=None):
        self.api = self
        self.base_url = "unix:///engine"
        self.plan = SimpleNamespace(job_name="job", memory=memory)
        self.said = queue.SimpleQueue()
        self.is_there = False

    def events(self, **_):
        return iter(self.said.get, None)

    def dies(self, container, code):
        self.said.put({"Actor": {"ID": container.identity, "Attributes": {"exitCode": str(code)}}})

    def ping(self):
        if not self.is_there:
            raise OSError("nobody answers")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(container_watch, "ASK_AGAIN_SECONDS", 0.01)


class Container:
    """One that ends, and is removed, when a test says so."""

    def __init__(self, *codes, out_of_memory=False, running=()):
        """`codes` are what `wait` returns, or raises, one after the other; `running` is what is seen meanwhile."""
        self.identity = uuid.uuid4().hex
        self._codes = list(codes)
        self._running = list(running)
        self._out_of_memory = out_of_memory
        self.ended, self.removed = threading.Event(), threading.Event()

    def wait(self):
        self.ended.wait()
        code = self._codes.pop(0)
        if isinstance(code, Exception):
            raise code
        return code

    def is_running(self):
        found = self._running.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def was_out_of_memory(self):
        return self._out_of_memory

    def remove(self):
        self.removed.set()


def told(engine, containers, count=1, output=None):
    """What it tells of containers that end, once it has told so much and all are removed."""
    loop, ends = Loop(), []
    watch = ContainerWatch(engine.plan, engine, loop, lambda *facts: ends.append(facts))
    watch.listen()
    for host, container in containers.items():
        watch.watch(host, container, output)
        container.ended.set()
    loop.run_until(lambda: len(ends) == count)
    engine.said.put(None)
    watch.wait(SECONDS)
    assert all(container.removed.is_set() for container in containers.values())
    more = []
    loop.after(0.0, lambda: more.append(True))
    loop.run_until(lambda: more)
    return ends


def test_an_end_that_the_engine_tells_twice_is_told_once():
    engine, container = Engine(), Container(3)
    engine.dies(container, 3)
    engine.dies(Container(4), 4)
    assert told(engine, {"algo-1": container}) == [("algo-1", 3, None)]


def test_a_late_word_on_a_container_is_not_taken_for_the_end_of_the_one_in_its_place():
    engine, loop, ends = Engine(), Loop(), []
    watch = ContainerWatch(engine.plan, engine, loop, lambda *facts: ends.append(facts))
    watch.listen()
    first, second = Container(137), Container(0)
    watch.watch("algo-2", first, None)
    first.ended.set()
    watch.wait_for(first)
    watch.watch("algo-2", second, None)
    engine.dies(first, 137)
    second.ended.set()
    watch.wait_for(second)
    engine.said.put(None)
    assert ends == [("algo-2", -9, None), ("algo-2", 0, None)]
    assert watch.has_told_of(second)


def test_the_end_of_every_container_is_told():
    ends = told(Engine(), {"algo-1": Container(0), "algo-2": Container(1)}, 2)
    assert sorted(ends) == [("algo-1", 0, None), ("algo-2", 1, None)]


@pytest.mark.parametrize(("code", "shown"), [(137, -9), (139, -11), (143, 143), (128, 128), (255, 255)])
def test_a_signal_is_told_as_one_unless_the_toolkit_has_stopped(code, shown):
    assert told(Engine(), {"algo-1": Container(code)}) == [("algo-1", shown, None)]


def test_what_was_out_of_memory_is_told_with_that_and_not_before_it_is_known():
    engine, container = Engine(memory=2.0), Container(137, out_of_memory=True)
    engine.dies(container, 137)
    ((host, code, found),) = told(engine, {"algo-1": container})
    assert (host, code, found.kind) == ("algo-1", -9, "out_of_memory")


def test_an_engine_that_goes_away_ends_its_hosts():
    ((host, code, found),) = told(Engine(), {"algo-1": Container(OSError("gone"))})
    assert (host, code, found.kind) == ("algo-1", 255, "platform")
    assert "unix:///engine" in found.message


def came_back(container, memory=None, output=None):
    """What is told of the one container of an engine that is started again."""
    engine = Engine(memory)
    engine.is_there = True
    (end,) = told(engine, {"algo-1": container}, output=output)
    return end


GONE = OSError("the connection was closed")


@pytest.mark.parametrize("code", [3, 0, 255, 137])
def test_a_container_that_an_engine_leaves_running_as_it_is_started_again_is_waited_for(code):
    """Whatever ends it later is not the engine's doing."""
    container = Container(GONE, GONE, code, running=[OSError("not yet"), True])
    assert came_back(container) == ("algo-1", -9 if code == 137 else code, None)


@pytest.mark.parametrize(("code", "shown"), [(255, 255), (137, -9), (143, 143)])
def test_an_engine_that_ends_a_container_as_it_is_started_again_is_to_blame_for_that(code, shown):
    host, told_code, found = came_back(Container(GONE, code, running=[False]))
    assert (host, told_code, found.kind) == ("algo-1", shown, "platform")
    assert "was started again while algo-1 ran" in found.message


def test_what_has_ended_by_itself_meanwhile_has_its_own_reason():
    assert came_back(Container(GONE, 3, running=[False])) == ("algo-1", 3, None)
    _, _, found = came_back(Container(GONE, 137, out_of_memory=True, running=[False]), memory=2.0)
    assert found.kind == "out_of_memory"


def test_a_container_whose_output_was_cut_off_as_an_engine_was_started_again_has_ended_by_that():
    """As with an image that has not our toolkit: its log would have a hole that nobody sees."""
    output = threading.Thread(target=lambda: None)
    output.start()
    _, code, found = came_back(Container(GONE, running=[True]), output=output)
    assert (code, found.kind) == (255, "platform")


def test_a_container_that_an_engine_does_not_know_any_more_was_lost_by_it():
    _, code, found = came_back(Container(GONE, running=[NotFound("no such container")]))
    assert (code, found.kind) == (255, "platform")
    assert found.message == "the Docker engine has lost the container of algo-1: no such container"
