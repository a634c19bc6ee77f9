import os
import resource

import pytest
from estimator_container.agents.checkpoints.ranks_alive import no_rank_died
from estimator_container.ranks.wrapper import FIRST_FD, last_fd


@pytest.fixture
def alive(tmp_path):
    made = tmp_path / "alive"
    made.mkdir()
    return made


@pytest.fixture
def rank(alive, program):
    """A rank as the wrapper starts it: with one file open under the lowest descriptor, and one under the highest."""

    def start(number=0):
        def open_files():
            for fd, which in ((FIRST_FD, "first"), (last_fd(), "last")):
                opened = os.open(alive / f"{number}-{which}", os.O_WRONLY | os.O_CREAT)
                os.dup2(opened, fd)
                if opened != fd:
                    os.close(opened)
            os.closerange(FIRST_FD + 1, last_fd())

        return program(preexec_fn=open_files)

    return start


def end_in_order(alive, number=0):
    for which in ("first", "last"):
        (alive / f"{number}-{which}").write_text("ended in order")


def test_without_ranks_there_is_nobody_who_could_have_died(alive):
    assert no_rank_died(str(alive))
    assert no_rank_died(str(alive / "missing"))


def test_a_rank_that_lives_vouches_for_what_is_closed(alive, rank):
    rank()
    assert no_rank_died(str(alive))


def test_a_rank_that_is_killed_in_mid_write_vouches_for_nothing(watched, alive, rank):
    program = rank()
    program.does(f"file = open({str(watched.path / 'model')!r}, 'wb', 0); file.write(b'half')")
    assert watched.state().unsettled == {"model"}
    program.kill()
    assert set(watched.state().files) == {"model"}, "the kernel has closed it"
    assert not no_rank_died(str(alive))


def test_one_dead_rank_is_enough(alive, rank):
    rank(0)
    rank(1).kill()
    assert not no_rank_died(str(alive))


def test_a_rank_that_ended_in_order_no_rank_died(alive, rank):
    rank().kill()
    end_in_order(alive)
    assert no_rank_died(str(alive))


def test_a_file_of_somebody_else_tells_nothing(alive, monkeypatch):
    (alive / "0-first").touch()
    from estimator_container.agents.checkpoints import ranks_alive

    def refused(path):
        raise PermissionError

    monkeypatch.setattr(ranks_alive, "has_writer", refused)
    assert no_rank_died(str(alive))


@pytest.mark.parametrize("opened", [1, 200])
def test_no_file_is_seen_closed_by_a_death_while_both_files_are_open(watched, alive, rank, opened):
    """What the whole idea stands on: how the kernel of this machine closes the files of a process that is killed.

    As quickly as one can look: whenever a checkpoint has been closed, one of the two files has been closed before.
    """
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > last_fd()
    names = [f"model-{number}" for number in range(opened)]
    for _ in range(10):
        for file in alive.iterdir():
            file.unlink()
        program = rank()
        opening = f"[open({str(watched.path)!r} + '/' + name, 'wb', 0) for name in {names!r}]"
        program.does(f"files = {opening}; [file.write(b'half') for file in files]")
        program.process.kill()
        seen = set()
        while len(seen) < opened:
            closed = {name for name in names if not watched.folder.is_being_written(name)}
            if closed - seen:
                assert not no_rank_died(str(alive))
            seen |= closed
        program.close()
