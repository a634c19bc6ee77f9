import os
import signal
import socket
import threading
import time

import pytest


@pytest.fixture
def pair():
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    yield ends
    for end in ends:
        end.close()


def test_a_callback_runs_when_its_descriptor_can_be_read(loop, run_until, pair):
    received = []
    loop.on_readable(pair[0].fileno(), lambda: received.append(pair[0].recv(10)))
    pair[1].send(b"hello")
    run_until(lambda: received)
    assert received == [b"hello"]


def test_a_descriptor_can_be_watched_for_both_at_once(loop, run_until, pair):
    rounds = []
    loop.on_readable_or_writable(pair[0].fileno(), lambda: rounds.append(1))
    run_until(lambda: rounds)
    full = 0
    while full is not None:
        try:
            pair[0].send(bytes(1 << 16))
        except BlockingIOError:
            full = None
    pair[1].send(b"x")
    rounds.clear()
    run_until(lambda: rounds)


def test_a_forgotten_descriptor_is_not_watched(loop, run_until, pair):
    called = []
    loop.on_readable(pair[0].fileno(), lambda: called.append(True))
    pair[1].send(b"hello")
    loop.forget(pair[0].fileno())
    loop.forget(pair[0].fileno())
    rounds = []
    loop.after(0.0, lambda: rounds.append(True))
    run_until(lambda: rounds)
    assert called == []


def test_a_callback_that_an_earlier_one_of_the_round_took_back_does_not_run(loop, run_until):
    pairs = [socket.socketpair() for _ in range(2)]
    called = []

    def forget_the_other(number):
        called.append(number)
        loop.forget(pairs[1 - number][0].fileno())

    for number, (near, far) in enumerate(pairs):
        loop.on_readable(near.fileno(), lambda number=number: forget_the_other(number))
        far.send(b"x")
    run_until(lambda: called)
    assert len(called) == 1
    for pair in pairs:
        for end in pair:
            end.close()


def test_timers_run_in_the_order_of_their_times_and_equal_ones_in_that_of_their_making(loop, run_until):
    order = []
    loop.after(0.25, lambda: order.append("last"))
    for name in ("a", "b", "c"):
        loop.after(0.0, lambda name=name: order.append(name))
    run_until(lambda: len(order) == 4)
    assert order == ["a", "b", "c", "last"]


def test_a_timer_does_not_run_before_its_time(loop, run_until):
    started, ended = time.monotonic(), []
    loop.after(0.02, lambda: ended.append(time.monotonic()))
    run_until(lambda: ended)
    assert ended[0] - started >= 0.02


def test_a_cancelled_timer_never_runs_and_does_not_wake_the_loop(loop, run_until):
    called = []
    timers = [loop.after(0.0, lambda: called.append("cancelled")) for _ in range(3)]
    loop.after(0.001, lambda: called.append("kept"))
    for timer in timers:
        timer.cancel()
    run_until(lambda: called)
    assert called == ["kept"]


def test_a_timer_may_cancel_another_that_is_due_at_the_same_time(loop, run_until):
    called = []
    loop.after(0.0, lambda: (called.append("first"), second.cancel()))
    second = loop.after(0.0, lambda: called.append("second"))
    loop.after(0.001, lambda: called.append("third"))
    run_until(lambda: "third" in called)
    assert called == ["first", "third"]


@pytest.mark.parametrize("seconds", [28 * 86400.0, 1e300, float("inf")])
def test_a_timer_may_be_further_away_than_the_kernel_waits_at_once(loop, pair, seconds):
    received = []
    loop.after(seconds, lambda: received.append("too early"))
    loop.on_readable(pair[0].fileno(), lambda: received.append(pair[0].recv(10)))
    pair[1].send(b"hello")
    loop.run_until(lambda: received)
    assert received == [b"hello"]


def test_a_signal_runs_its_callback_in_the_loop_and_not_in_the_middle_of_other_code(loop, run_until):
    received = []
    loop.on_signal(signal.SIGUSR1, lambda: received.append("one"))
    loop.on_signal(signal.SIGUSR2, lambda: received.append("two"))
    os.kill(os.getpid(), signal.SIGUSR1)
    assert received == []
    run_until(lambda: received)
    os.kill(os.getpid(), signal.SIGUSR2)
    run_until(lambda: len(received) == 2)
    assert received == ["one", "two"]


def test_what_other_threads_hand_over_runs_in_the_loop_even_if_they_outrun_it(loop, run_until):
    ran = []
    count = 1 << 17  # more than a pipe has room for
    handing = threading.Thread(target=lambda: [loop.from_thread(lambda: ran.append(1)) for _ in range(count)])
    handing.start()
    handing.join()
    loop.from_thread(lambda: ran.append(threading.current_thread()))
    run_until(lambda: len(ran) > count)
    assert ran[-1] is threading.current_thread()


def test_what_is_done_aside_holds_up_nothing_and_its_result_comes_in_the_loop(loop, run_until):
    go_on, found = threading.Event(), []
    loop.aside(lambda: (go_on.wait(), threading.current_thread())[1], found.append)
    loop.after(0.0, go_on.set)  # which would never run if the loop waited
    run_until(lambda: found)
    assert found != [threading.current_thread()]


def test_what_fails_aside_fails_in_the_loop(loop, run_until):
    loop.aside(lambda: 1 // 0, lambda found: None)
    with pytest.raises(ZeroDivisionError):
        run_until(lambda: False)


def test_the_loop_does_not_wait_for_a_condition_that_holds_already(loop):
    loop.run_until(lambda: True)
