"""Run one of Horovod's examples as it is, then print what tells the weights of its model from others."""

from __future__ import annotations

import hashlib
import importlib.util
import runpy
import sys
from collections.abc import Iterable
from typing import Any

WEIGHTS = "weights after the example: "


def digest(arrays: Iterable[Any]) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def make_torchvision_importable() -> None:
    """PyPI has it built for CUDA: beside a PyTorch without, its operators do not load, and its import ends at the
    first that it describes. No model here needs those, so it is enough to declare them."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        declared.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            declared[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    except ImportError:  # the example does without
        pass


declared: list[Any] = []
"""A declaration lasts as long as its library is kept."""


def run_torch(path: str) -> str:
    """The weights are those of the optimizer that stepped last: the model may be out of reach in a function."""
    make_torchvision_importable()
    from torch.optim.optimizer import register_optimizer_step_post_hook

    stepped = []
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: stepped.append(optimizer))
    runpy.run_path(path, run_name="__main__")
    weights = (weight for group in stepped[-1].param_groups for weight in group["params"])
    return digest(weight.detach().numpy() for weight in weights)


def run_tensorflow(path: str) -> str:
    """The weights are those of the global `model`, without what batch normalization has seen: that is each rank's."""
    model = runpy.run_path(path, run_name="__main__")["model"]
    return digest(variable.numpy() for variable in model.trainable_variables)


if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    run = run_torch if importlib.util.find_spec("torch") else run_tensorflow
    print(f"\n{WEIGHTS}{run(sys.argv[0])}", flush=True)
