"""Show what a host's ranks write on the standard output of its container: `console.py FRAMES HOST`.

Why the job failed, which may be for no rank's sake, is its last line, on standard error. It is a process of its own, so
that a reader who is slow, or who has stopped, holds up nobody else. It ends by itself after the toolkit's last event.
"""

from __future__ import annotations

import json
import os
import sys

sys.path.append(os.path.abspath(os.path.join(__file__, "../../..")))

from estimator_container.logs.frames import EVENT, FrameParser
from estimator_container.logs.lines import LineAssembler

LAST_EVENT = b'{"event": "ended"'
_IN_MODIFY = 0x2  # MODIFY of `agents.watching.inotify`, which lies above


def show(frames: str, host: str, out: int, err: int) -> None:
    """Write every line of the frame file, those to come included, to the descriptor `out`, and a failure to `err`."""
    import ctypes  # here, because the toolkit itself only wants to know where this file is

    parser, assembler = FrameParser(), LineAssembler(host)
    libc = ctypes.CDLL(None)
    inotify = libc.inotify_init1(os.O_CLOEXEC)
    libc.inotify_add_watch(inotify, os.fsencode(frames), _IN_MODIFY)
    ended = b""
    with open(frames, "rb") as file:
        while not ended:
            for frame in parser.feed(file.read(1 << 20)):
                if frame.stream == EVENT and frame.data.startswith(LAST_EVENT):
                    ended = frame.data
                block = assembler.feed(frame)
                if block is not None:
                    _write(out, block.tagged())
            if not ended and file.tell() == os.fstat(file.fileno()).st_size:
                os.read(inotify, 1 << 12)  # blocks until the file grows
    for block in assembler.flush():
        _write(out, block.tagged())
    reason = json.loads(ended).get("reason")
    if reason:
        _write(err, f"train: {reason}\n".encode("utf-8", "replace"))


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    show(sys.argv[1], sys.argv[2], 1, 2)
