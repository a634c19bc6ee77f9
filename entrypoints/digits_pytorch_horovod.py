"""Recognise handwritten digits with PyTorch, on all ranks of a Horovod world.

    python digits_pytorch_horovod.py                      # one process
    mpirun -np 4 python digits_pytorch_horovod.py         # four of them

What Horovod asks of a training script is marked with numbers, 1 to 7, as in the example with Keras.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from pathlib import Path

import checkpoints
import digits
import horovod.torch as hvd
import open_mpi
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


def join_world() -> torch.device:
    """1. Meet the other ranks, and take no more than this rank's part of the machine."""
    open_mpi.find()
    hvd.init()
    torch.set_num_threads(1)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(hvd.local_rank() % torch.cuda.device_count())
    return torch.device("cuda")


def new_model() -> nn.Module:
    return nn.Sequential(nn.Linear(digits.PIXELS, 64), nn.ReLU(), nn.Linear(64, digits.CLASSES))


def start(settings: argparse.Namespace, model: nn.Module) -> tuple[int, torch.optim.Optimizer]:
    """Epochs done, and the optimizer. Only rank 0 needs to see the checkpoint: the others start from its state."""
    # 2. As many ranks as there are, so much larger is the batch: the learning rate grows with it.
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate * hvd.size())
    found = checkpoints.newest(settings.checkpoint_dir, SUFFIX) if hvd.rank() == 0 else None
    if found:
        print(f"resuming after epoch {found[0]} from {found[1]}", flush=True)
        state = torch.load(found[1], weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    # 3. All ranks start from the state of rank 0.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    # 4. Average the gradients of all ranks at every step.
    averaging = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    return hvd.broadcast_object(found[0] if found else 0), averaging


def train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: digits.Examples,
    settings: argparse.Namespace,
    epoch: int,
    device: torch.device,
) -> float:
    """Train on this rank's share of the images; returns the mean loss of all ranks."""
    model.train()
    total = 0.0
    # 5. This rank's share: every rank has the same number of batches.
    batches = digits.batches(
        len(data), rank=hvd.rank(), size=hvd.size(), batch_size=settings.batch_size, seed=settings.seed, epoch=epoch
    )
    for chosen in batches:
        batch = data[chosen]
        optimizer.zero_grad()
        predicted = model(torch.from_numpy(batch.images).to(device))
        loss = nn.functional.cross_entropy(predicted, torch.from_numpy(batch.labels).to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return float(hvd.allreduce(torch.tensor(total / len(batches)), name="loss"))


def accuracy(model: nn.Module, test: digits.Examples, device: torch.device) -> float:
    """The share of the test images that the model knows."""
    model.eval()
    with torch.no_grad():
        predicted = model(torch.from_numpy(test.images).to(device)).argmax(1).cpu()
    return float((predicted == torch.from_numpy(test.labels)).float().mean())


def save(path: Path, **state: object) -> None:
    with checkpoints.written_whole(path) as unfinished:
        torch.save(state, unfinished)


def check_agreement(model: nn.Module) -> None:
    """7. End with an error unless every rank holds the same weights, bit for bit."""
    weights = b"".join(weight.detach().cpu().numpy().tobytes() for weight in model.parameters())
    checksums = hvd.allgather_object(hashlib.sha256(weights).hexdigest())
    if len(set(checksums)) > 1:
        sys.exit(f"the weights differ between the {hvd.size()} ranks: not every gradient was averaged")
    if hvd.rank() == 0:
        print(f"weights agree on all {hvd.size()} ranks", flush=True)


def main(argv: list[str]) -> None:
    settings = arguments(argv)
    device = join_world()
    torch.manual_seed(settings.seed)
    data, test = digits.load(settings.train)
    model = new_model().to(device)
    done, optimizer = start(settings, model)
    if hvd.rank() == 0:
        print(f"training on {len(data)} images with {hvd.size()} ranks", flush=True)
    for epoch in range(done, settings.epochs):
        loss = train_epoch(model, optimizer, data, settings, epoch, device)
        # 6. Only rank 0 reports and writes files: the others hold the same model.
        if hvd.rank() == 0:
            path = checkpoints.path_of(settings.checkpoint_dir, epoch + 1, SUFFIX)
            save(path, model=model.state_dict(), optimizer=optimizer.state_dict())
            print(f"epoch {epoch + 1}/{settings.epochs} loss {loss:.4f}", flush=True)
    check_agreement(model)
    if hvd.rank() == 0:
        print(f"test_accuracy: {accuracy(model, test, device):.4f}", flush=True)
        save(settings.model_dir / "model.pt", model=model.state_dict())


if __name__ == "__main__":
    main(sys.argv[1:])
