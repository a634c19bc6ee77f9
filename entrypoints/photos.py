"""The data of the photos example: JPEGs of four shapes, which it draws itself, and what is made of them.

A photo is large beside what a network takes, as photos are: reading and decoding it costs more than training on it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

SHAPES = ("disc", "square", "stripes", "checks")
SIDE = 512
"""Pixels of a photo, in both directions."""
SMALL_SIDE = 48
"""The same of what a network takes."""


def draw(number: int) -> tuple[NDArray[np.uint8], int]:
    """The photo of that number, (SIDE, SIDE, 3), and which of `SHAPES` is on it; the same in every run."""
    random = np.random.default_rng(number)
    label = number % len(SHAPES)
    down, across = np.mgrid[:SIDE, :SIDE] - random.integers(SIDE // 3, 2 * SIDE // 3, (2, 1, 1))
    size = random.integers(SIDE // 8, SIDE // 4)
    inside = (
        np.hypot(down, across) < size,
        np.maximum(abs(down), abs(across)) < size,
        (across // (size // 3)) % 2 == 0,
        (across // (size // 2) + down // (size // 2)) % 2 == 0,
    )[label]
    colours = random.integers(32, 224, (2, 3))
    noise = random.integers(-32, 32, (SIDE, SIDE, 3), np.int8)  # as cameras have it; it is most of a file
    return (np.where(inside[..., None], *colours) + noise).astype(np.uint8), label


def write(folder: Path, numbers: range) -> tuple[list[str], list[int]]:
    """Write photos as JPEGs; returns their paths, and what is on each."""
    folder.mkdir(parents=True, exist_ok=True)
    paths, labels = [], []
    for number in numbers:
        photo, label = draw(number)
        path = folder / f"{number:05}.jpg"
        path.write_bytes(tf.io.encode_jpeg(photo, quality=95).numpy())
        paths.append(str(path))
        labels.append(label)
    return paths, labels


def load(path: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Of a file what a network takes: (SMALL_SIDE, SMALL_SIDE, 3), from 0 to 1."""
    photo = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    small = tf.image.resize(photo, (SMALL_SIDE, SMALL_SIDE), antialias=True)
    return tf.ensure_shape(small, (SMALL_SIDE, SMALL_SIDE, 3)) / 255.0, label
