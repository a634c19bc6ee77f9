"""What mpirun calls instead of ssh: `launch_agent.py SOCKET HOST COMMAND…`.

It passes the request to the toolkit of its own host, which asks the toolkit that already runs on
HOST to start the MPI daemon there, and ends as soon as that one says that it did.
"""

from __future__ import annotations

import os
import socket
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from estimator_container.wire import Unpacker, pack


def main(argv: list[str]) -> int:
    """Returns 0 once the daemon runs, 1 with the reason on stderr when it does not."""
    path, host, *command = argv
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(path)
    sock.sendall(pack(["daemon", host, " ".join(command)]))
    unpacker = Unpacker()
    while True:
        data = sock.recv(1 << 16)
        if not data:
            sys.stderr.write(f"the toolkit on this host ended before {host} could start its MPI daemon\n")
            return 1
        for outcome, reason in unpacker.feed(data):
            if outcome != "started":
                sys.stderr.write(f"{host} could not start its MPI daemon: {reason}\n")
            return 0 if outcome == "started" else 1


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))
