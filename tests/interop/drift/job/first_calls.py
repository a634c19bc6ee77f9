"""Sees that functions of PyTorch have been called on few numbers by the time that a script has imported it."""

from __future__ import annotations

import sys
import types

called: set[tuple[str, str, int]] = set()


def note(frame: object, event: str, function: object) -> None:
    if event == "c_call" and isinstance(function, types.BuiltinMethodType):
        tensor = function.__self__
        if type(tensor).__name__ == "Tensor":
            called.add((function.__name__, str(tensor.dtype), tensor.numel()))


sys.setprofile(note)
__import__("torch")
sys.setprofile(None)
for name in ("sqrt", "exp", "log", "tanh"):
    for dtype in ("torch.float32", "torch.float64"):
        if not any((name, dtype) == (*each,) and numbers < 100 for *each, numbers in called):
            sys.exit(f"nobody has called {name} of {dtype}")
