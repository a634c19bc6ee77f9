"""What the digits examples with PyTorch have in common, whatever joins their ranks."""

from __future__ import annotations

import argparse
import hashlib
import os
from pathlib import Path

import checkpoints
import digits
import torch
from torch import nn

SUFFIX = ".pt"


def arguments(argv: list[str]) -> argparse.Namespace:
    """Hyperparameters come as arguments, folders as arguments or from the environment of a training job."""
    model_dir = os.environ.get("SM_MODEL_DIR", "/opt/ml/model")
    checkpoint_dir = os.environ.get("SM_CHECKPOINT_DIR", "/opt/ml/checkpoints")
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32, help="images a step on each rank")
    parser.add_argument("--learning-rate", type=float, default=0.005, help="for one rank; times their number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--train", default=os.environ.get("SM_CHANNEL_TRAIN"), help="folder of digits.npz")
    parser.add_argument("--model-dir", type=Path, default=Path(model_dir))
    parser.add_argument("--checkpoint-dir", type=Path, default=Path(checkpoint_dir))
    return parser.parse_args(argv)


def new_model() -> nn.Module:
    return nn.Sequential(nn.Linear(digits.PIXELS, 64), nn.ReLU(), nn.Linear(64, digits.CLASSES))


def loss_of(model: nn.Module, batch: digits.Examples, device: torch.device) -> torch.Tensor:
    predicted = model(torch.from_numpy(batch.images).to(device))
    return nn.functional.cross_entropy(predicted, torch.from_numpy(batch.labels).to(device))


def accuracy(model: nn.Module, test: digits.Examples, device: torch.device) -> float:
    """The share of the test images that the model knows."""
    model.eval()
    with torch.no_grad():
        predicted = model(torch.from_numpy(test.images).to(device)).argmax(1).cpu()
    return float((predicted == torch.from_numpy(test.labels)).float().mean())


def checksum(model: nn.Module) -> str:
    """Of all weights: equal where they are, bit for bit."""
    weights = b"".join(weight.detach().cpu().numpy().tobytes() for weight in model.parameters())
    return hashlib.sha256(weights).hexdigest()


def save(path: Path, **state: object) -> None:
    with checkpoints.written_whole(path) as unfinished:
        torch.save(state, unfinished)
