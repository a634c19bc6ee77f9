"""The data of the digits examples: 1,797 images of handwritten digits, 8x8 pixels, and who trains on which.

They come with scikit-learn (`sklearn.datasets.load_digits`, from UCI's "Optical Recognition of Handwritten
Digits"). A channel may bring them, or others of the same form, as `digits.npz`: `images` (count, 8, 8) or
(count, 64) with values 0 to 16, `labels` (count,) with values 0 to 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILE = "digits.npz"
PIXELS = 64
CLASSES = 10
_TEST_SHARE = 0.2
_SPLIT_SEED = 2024  # fixed, so that no run ever trains on what another one tests on


@dataclass(frozen=True)
class Examples:
    """Images and what they show."""

    images: NDArray[np.float32]
    """(count, 64), from 0 to 1."""
    labels: NDArray[np.int64]
    """(count,), from 0 to 9."""

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, chosen: NDArray[np.int64] | slice) -> Examples:
        return Examples(self.images[chosen], self.labels[chosen])


def load(channel: str | None) -> tuple[Examples, Examples]:
    """The training set and the test set (a fifth); the same split on every rank and in every run.

    channel: a folder with `digits.npz`; None takes scikit-learn's copy.

    Raises FileNotFoundError when the folder has no such file, ValueError when the file has another form.
    """
    examples = _from_scikit_learn() if channel is None else _from_file(Path(channel) / FILE)
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(examples))
    test_count = round(len(examples) * _TEST_SHARE)
    return examples[order[test_count:]], examples[order[:test_count]]


def batches(count: int, *, rank: int, size: int, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """The batches of one rank in one epoch, as indices into `count` examples.

    Together the ranks see every example once. All have the same number of batches, for a rank that makes a
    step more than the others would wait for them for ever; so a batch may be a little larger than asked.
    The order is new in every epoch and depends on `seed` and `epoch` alone: a resumed run goes on as the
    first one would have.

    Raises ValueError where there are fewer examples than ranks.
    """
    if count < size:
        raise ValueError(f"{count} examples do not go round {size} ranks: use fewer ranks or more data.")
    order = np.random.default_rng([seed, epoch]).permutation(count)
    steps = max(1, count // (size * batch_size))
    return np.array_split(order[rank::size], steps)


def _from_scikit_learn() -> Examples:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return _examples(images, labels)


def _from_file(path: Path) -> Examples:
    if not path.is_file():
        raise FileNotFoundError(
            f"The training channel has no {path.name} (looked for {path}): "
            "put one there, or leave the channel out to train on scikit-learn's digits."
        )
    with np.load(path) as arrays:
        missing = {"images", "labels"} - set(arrays.files)
        if missing:
            raise ValueError(f"{path} lacks {' and '.join(sorted(missing))}; it has {', '.join(arrays.files)}.")
        return _examples(arrays["images"], arrays["labels"])


def _examples(images: NDArray[np.generic], labels: NDArray[np.generic]) -> Examples:
    flat = images.reshape(len(images), PIXELS) / np.float32(16)
    return Examples(flat.astype(np.float32), labels.astype(np.int64))
