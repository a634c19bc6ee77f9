"""A small network written out by hand: 64 pixels, one hidden layer, 10 classes; its loss and its gradient.

All parameters lie in one flat vector, which is what an allreduce wants to have.
"""

from __future__ import annotations

import digits
import numpy as np
from numpy.typing import NDArray

HIDDEN = 64
SHAPES = {
    "weights_1": (digits.PIXELS, HIDDEN),
    "bias_1": (HIDDEN,),
    "weights_2": (HIDDEN, digits.CLASSES),
    "bias_2": (digits.CLASSES,),
}
_SIZES = [int(np.prod(shape)) for shape in SHAPES.values()]

Vector = NDArray[np.floating]


def layers(parameters: Vector) -> dict[str, Vector]:
    """The arrays that SHAPES names, as views into the flat vector."""
    parts = np.split(parameters, np.cumsum(_SIZES)[:-1])
    return {name: part.reshape(shape) for (name, shape), part in zip(SHAPES.items(), parts, strict=True)}


def initial_parameters(seed: int) -> Vector:
    """Random weights, scaled for a rectified layer (He et al., 2015), and biases of zero."""
    random = np.random.default_rng(seed)
    parameters = np.zeros(sum(_SIZES), dtype=np.float32)
    for name, layer in layers(parameters).items():
        if name.startswith("weights"):
            layer[...] = random.normal(0, np.sqrt(2 / layer.shape[0]), layer.shape)
    return parameters


def loss_and_gradient(parameters: Vector, examples: digits.Examples) -> tuple[float, float, Vector]:
    """Mean cross-entropy, accuracy, and the gradient of the loss as a vector like `parameters`."""
    layer = layers(parameters)
    hidden = np.maximum(examples.images @ layer["weights_1"] + layer["bias_1"], 0)
    logits = hidden @ layer["weights_2"] + layer["bias_2"]
    logits -= logits.max(axis=1, keepdims=True)
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    rows = np.arange(len(examples))
    loss = -log_probabilities[rows, examples.labels].mean()
    accuracy = (logits.argmax(axis=1) == examples.labels).mean()

    to_logits = np.exp(log_probabilities)
    to_logits[rows, examples.labels] -= 1
    to_logits /= len(examples)
    to_hidden = (to_logits @ layer["weights_2"].T) * (hidden > 0)
    gradient = np.empty_like(parameters)
    into = layers(gradient)
    into["weights_1"][...] = examples.images.T @ to_hidden
    into["bias_1"][...] = to_hidden.sum(axis=0)
    into["weights_2"][...] = hidden.T @ to_logits
    into["bias_2"][...] = to_logits.sum(axis=0)
    return float(loss), float(accuracy), gradient
