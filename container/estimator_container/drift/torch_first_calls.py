"""Keeps PyTorch from computing less exactly on one rank than on the others when it first calls a function.

oneMKL chooses the code of each of its vector functions when that is first called. If two threads call it then, one of
them may be given code for less exact results (oneMKL 2024.2, https://github.com/pytorch/pytorch/issues/188792). The
first square roots of a rank are often those of Adam's first step, after which its weights would be off by about a
ten-thousandth of that step: enough to be told from the others', by no fault of the script.
"""

from __future__ import annotations

import torch

from .training import Guard

_FUNCTIONS = "acos asin atan cos erf erfc erfinv exp expm1 log log10 log1p log2 sin sqrt tan tanh trunc"
"""Those that PyTorch has taken from oneMKL in one version or another (PyTorch, ATen/cpu/vml.h)."""


def call_functions(optim: object, guard: Guard) -> None:
    """Call each of them in this thread alone, before the script can call one in several; that takes 3 ms."""
    guard.safely(_call)


def _call() -> None:
    for dtype in (torch.float32, torch.float64):
        few = torch.full((8,), 0.5, dtype=dtype, device="cpu")  # which PyTorch does not divide among threads
        for name in _FUNCTIONS.split():
            getattr(few, name)()
