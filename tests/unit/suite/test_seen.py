"""What looks at a job from outside tells the processes of its toolkits."""

import os
import signal

from tests.ssh.seen import without_forks


def test_a_child_that_is_still_its_parents_program_is_not_taken_for_it():
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        assert without_forks([child, os.getpid()]) == [os.getpid()]
        assert without_forks([child]) == [child]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
