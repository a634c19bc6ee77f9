from __future__ import annotations

import os
import socket

from estimator_container.agents.outputs.agent import OutputAgent
from estimator_container.agents.outputs.settings import OutputSettings
from estimator_container.agents.watching.folder import WatchedFolder
from estimator_container.runtime.wire import Unpacker, pack


def test_a_folder_that_cannot_be_watched_goes_up_in_the_end(tmp_path, monkeypatch):
    """As one with a path that is too long: the kernel's answer ended the agent, and with it the job."""
    source, store = tmp_path / "intermediate", tmp_path / "store"
    source.mkdir()
    (source / "file").write_text("x")
    deep = os.open(source, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=deep)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    looks, state = [], WatchedFolder.state
    monkeypatch.setattr(WatchedFolder, "state", lambda *arguments: (looks.append(1), state(*arguments))[1])
    owner, own = socket.socketpair()
    with owner:
        agent = OutputAgent(own)
        settings = OutputSettings(f"file://{store}", folders={"intermediate/": str(source)})
        owner.sendall(pack(("settings", settings.to_json())))
        agent._loop.run_until(lambda: bool(looks))
        owner.sendall(pack(("finish", "")))
        agent._loop.run_until(lambda: agent._is_over)
        ((kind, reason, left_out),) = Unpacker().feed(owner.recv(1 << 16))
    assert (kind, reason) == ("finished", "") and left_out.endswith("dd'… is too long for a path")
    assert (store / "intermediate" / "file").read_text() == "x"
