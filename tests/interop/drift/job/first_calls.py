"""Sees that functions of PyTorch have been called on few numbers by the time that a script has imported it."""

from __future__ import annotations

import sys
import types

WANTED = {(name, f"torch.{dtype}") for name in ("sqrt", "exp", "log", "tanh") for dtype in ("float32", "float64")}
called: set[tuple[str, str]] = set()


def note(frame: object, event: str, function: object) -> None:
    if event == "c_call" and isinstance(function, types.BuiltinMethodType):
        tensor = function.__self__
        if type(tensor).__name__ == "Tensor" and tensor.numel() < 100:
            called.add((function.__name__, str(tensor.dtype)))


sys.setprofile(note)
__import__("torch")
sys.setprofile(None)
if missing := WANTED - called:
    sys.exit(f"nobody has called {sorted(missing)}")
