"""Numbers that stand twice, for a program that starts often, or lies lower, does not load the other's module."""

import fcntl
import signal

from estimator_container.agents.channels import pipes
from estimator_container.agents.watching import inotify
from estimator_container.contract import names
from estimator_container.logs import console
from estimator_container.ranks import streams, wrapper


def test_a_script_that_has_stopped_ends_as_its_host_does():
    assert wrapper.EXIT_STOPPED == names.EXIT_STOPPED == 128 + signal.SIGTERM


def test_a_file_that_grows_is_the_same_news_for_all():
    assert console._IN_MODIFY == inotify.MODIFY


def test_pipes_are_made_larger_by_the_number_of_the_kernel():
    assert {streams._F_SETPIPE_SZ, pipes._F_SETPIPE_SZ, getattr(fcntl, "F_SETPIPE_SZ", 1031)} == {1031}
