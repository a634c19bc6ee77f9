"""Show what a host's ranks write on the standard output of its container: `console.py FRAMES HOST`.

Why the job failed, which may be for no rank's sake, is its last line, on standard error. It is a process of its own, so
that a reader who is slow, or who has stopped, holds up nobody else. It ends by itself after the toolkit's last event.
"""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.abspath(os.path.join(__file__, "../../..")))

from estimator_container.logs.frames import EVENT, FrameParser
from estimator_container.logs.lines import LineAssembler

_IN_MODIFY = 0x2  # MODIFY of `agents.watching.inotify`, which lies above


def show(frames: str, host: str, out: int, err: int) -> None:
    """Write every line of the frame file, those to come included, to the descriptor `out`, and a failure to `err`."""
    import ctypes  # these here, because the toolkit itself only wants to know where this file is

    from estimator_container.contract.event_decoding import decode
    from estimator_container.contract.events import Ended

    parser, assembler = FrameParser(), LineAssembler(host)
    libc = ctypes.CDLL(None)
    inotify = libc.inotify_init1(os.O_CLOEXEC)
    libc.inotify_add_watch(inotify, os.fsencode(frames), _IN_MODIFY)
    ended: Ended | None = None
    with open(frames, "rb") as file:
        while ended is None:
            for frame in parser.feed(file.read(1 << 20)):
                event = decode(frame.data) if frame.stream == EVENT else None
                ended = event if isinstance(event, Ended) else ended
                block = assembler.feed(frame)
                if block is not None:
                    _write(out, block.tagged())
            if ended is None and file.tell() == os.fstat(file.fileno()).st_size:
                os.read(inotify, 1 << 12)  # blocks until the file grows
    for block in assembler.flush():
        _write(out, block.tagged())
    if ended.reason:
        _write(err, f"train: {ended.reason}\n".encode("utf-8", "replace"))


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    show(sys.argv[1], sys.argv[2], 1, 2)
