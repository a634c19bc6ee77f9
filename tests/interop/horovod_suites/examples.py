"""Horovod's examples that download nothing: how they are run, and whether their ranks came to the same weights."""

from __future__ import annotations

import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.interop.horovod_suites.example_on_rank import WEIGHTS
from tests.interop.horovod_suites.world import World, install, lines

FEW_OF_TWO = "--batch-size 2 --num-warmup-batches 1 --num-batches-per-iter 1 --num-iters 2"
TORCHVISION = "torchvision==0.28.0"
"""The one for PyTorch 2.13."""


def no_data(folder: Path) -> None:
    """For examples that make their own numbers."""


def random_digits(folder: Path) -> None:
    """The files that torchvision knows MNIST by, with random images in them.

    http://yann.lecun.com/exdb/mnist describes the format: a big-endian header, then bytes.
    """
    raw = folder / "data" / "MNIST" / "raw"
    raw.mkdir(parents=True)
    numbers = np.random.default_rng(0)
    for name, count in (("train", 512), ("t10k", 64)):
        images = numbers.integers(0, 256, (count, 28, 28), "uint8")
        labels = numbers.integers(0, 10, count, "uint8")
        (raw / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 2051, count, 28, 28) + images.tobytes())
        (raw / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 2049, count) + labels.tobytes())


@dataclass(frozen=True)
class Example:
    """A script of `examples/`, with arguments that let it be quick."""

    path: str
    words: str
    packages: tuple[str, ...] = ()
    """What it imports besides the framework."""
    data: Callable[[Path], None] = no_data
    """Writes what it would download into its folder."""

    @property
    def name(self) -> str:
        return Path(self.path).stem


SYNTHETIC = "tensorflow2/tensorflow2_synthetic_benchmark.py"
SYNTHETIC_KERAS = "tensorflow2/tensorflow2_keras_synthetic_benchmark.py"
SYNTHETIC_ELASTIC = "elastic/tensorflow2/tensorflow2_synthetic_benchmark_elastic.py"
SYNTHETIC_TORCH = "pytorch/pytorch_synthetic_benchmark.py"
SYNTHETIC_TORCH_ELASTIC = "elastic/pytorch/pytorch_synthetic_benchmark_elastic.py"
VISION = (TORCHVISION, "pillow")
EXAMPLES = {
    "tensorflow": (
        Example(SYNTHETIC, f"--model MobileNetV2 {FEW_OF_TWO}"),
        Example(SYNTHETIC, f"--model MobileNetV2 --fp16-allreduce {FEW_OF_TWO}"),
        Example(SYNTHETIC_KERAS, "--model MobileNetV2 --batch-size 2 --num-batches-per-iter 1 --num-iters 2"),
        Example(
            SYNTHETIC_KERAS,
            "--model MobileNetV2 --fp16-allreduce --batch-size 2 --num-batches-per-iter 1 --num-iters 2",
        ),
        Example(SYNTHETIC_ELASTIC, f"--model MobileNetV2 {FEW_OF_TWO}"),
    ),
    "pytorch": (
        Example("adasum/adasum_small_model.py", "--op Average"),
        Example("adasum/adasum_small_model.py", "--op Adasum"),
        Example(SYNTHETIC_TORCH, f"--model mobilenet_v2 {FEW_OF_TWO}", VISION),
        Example(SYNTHETIC_TORCH, f"--model mobilenet_v2 --fp16-allreduce {FEW_OF_TWO}", VISION),
        Example(SYNTHETIC_TORCH, f"--model mobilenet_v2 --use-adasum {FEW_OF_TWO}", VISION),
        Example(SYNTHETIC_TORCH_ELASTIC, f"--model mobilenet_v2 {FEW_OF_TWO}", VISION),
        Example("pytorch/pytorch_mnist.py", "--epochs 1", VISION, random_digits),
    ),
}
"""Framework -> examples."""


def report(checkout: Path, example: Example, world: World) -> tuple[str, bool]:
    """How an example ended, and whether it ended well with the same weights on all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        code = Path(shutil.copytree((checkout / "examples" / example.path).parent, Path(folder) / "code"))
        shutil.copy(Path(__file__).parent / "example_on_rank.py", code)
        if example.packages:
            install(example.packages, code, "--no-deps")
        example.data(code)
        job = world.run(code, ["example_on_rank.py", Path(example.path).name, *example.words.split()])
    digests = [digest for rank in range(world.ranks) for digest in lines(job, rank, WEIGHTS)]
    agree = len(digests) == world.ranks and len(set(digests)) == 1
    said = f"{job.status}, and the weights {'agree' if agree else 'do not agree'} on {world.ranks} ranks"
    return f"{example.path} {example.words}: {said}", agree and job.status == "Completed"
