"""The connection of a machine of a pool to the job's supervisor."""

from __future__ import annotations

import signal
import subprocess
import sys

from estimator_container.mesh.pulse import Loss
from estimator_container.runtime.loop import Loop

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.keeping.preparation import mesh_to_supervisor
from tests.waiting import SECONDS, wait_until_stopped

SECRET = "5e" * 16
SUPERVISOR = f"""
import socket, sys
from estimator_container.mesh.mesh import Member, MeshLeader
from estimator_container.runtime.loop import Loop

class Observer:
    def on_joined(self, host):
        mesh.begin_to_beat()

    def on_message(self, host, message):
        pass

    def on_lost(self, host, how):
        pass

loop, door = Loop(), socket.create_server(("127.0.0.1", 0))
print(door.getsockname()[1], flush=True)
mesh = MeshLeader(loop, Member({words.SUPERVISOR!r}, ("machine-1",), bytes.fromhex({SECRET!r})), Observer(), door, 60)
loop.run_until(lambda: False)
"""


class Observer:
    """What a keeper hears."""

    def __init__(self) -> None:
        self.joined, self.lost = [], []

    def on_joined(self, host):
        self.joined.append(host)

    def on_message(self, host, message):
        pass

    def on_lost(self, host, how):
        self.lost.append(how)


def test_a_supervisor_that_stands_still_for_some_seconds_is_not_lost_and_one_that_ends_is():
    """As where a disk, or a network file system, does not answer."""
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True)
    try:
        place = f"127.0.0.1:{supervisor.stdout.readline().strip()}"
        loop, heard = Loop(), Observer()
        mesh = mesh_to_supervisor(loop, words.KeeperSettings("machine-1", SECRET, place, "/none"), heard)
        loop.run_until(lambda: heard.joined, SECONDS)
        mesh.begin_to_beat()
        loop.run_until(lambda: False, 1.0)
        supervisor.send_signal(signal.SIGSTOP)
        wait_until_stopped(supervisor.pid)
        loop.run_until(lambda: heard.lost, 4.0)
        assert heard.lost == []
        supervisor.kill()
        loop.run_until(lambda: heard.lost, SECONDS)
        assert heard.lost == [Loss.CLOSED]
    finally:
        supervisor.kill()
        supervisor.communicate()
