import signal

import pytest
from estimator_container.runtime.loop import Loop

from tests.waiting import SECONDS


@pytest.fixture
def loop():
    """A loop of this process; the signal handlers that it sets do not outlive the test."""
    numbers = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)
    before = {signum: signal.getsignal(signum) for signum in numbers}
    yield Loop()
    signal.set_wakeup_fd(-1)
    for signum, handler in before.items():
        signal.signal(signum, handler)


@pytest.fixture
def run_until(loop):
    """Runs the loop until a condition holds, and fails a test whose condition never does."""

    def run(done):
        late = []
        timer = loop.after(SECONDS, lambda: late.append(True))
        loop.run_until(lambda: done() or late)
        timer.cancel()
        assert not late, "nothing more happened"

    return run
