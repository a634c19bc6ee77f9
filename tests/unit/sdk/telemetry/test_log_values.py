"""The values that stand in lines of a log."""

import re

import pytest
from estimator_container.logs.lines import Block
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk.telemetry.log_values import StreamValues


def values(text, definitions=()):
    """Name, value and step of what is found in the lines of a rank."""
    stream = StreamValues(definitions)
    return [
        (found.name, found.value, found.step)
        for part in text.split("\0")
        for found in stream.of_block(Block(0, "algo-1", 0, "stdout", part.encode()))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss: 0.5\n", [("loss", 0.5, None)]),
        ("  loss: 0.5, accuracy: 1e-3\n", [("loss", 0.5, None), ("accuracy", 0.001, None)]),
        ("epoch: 3 - val/loss: -2 | lr: .5\n", [("val/loss", -2.0, 3), ("lr", 0.5, 3)]),
        ("step: 7; epoch: 1; loss: nan\n", [("loss", pytest.approx(float("nan"), nan_ok=True), 7)]),
        ("epoch: 1.5 loss: 2\n", [("loss", 2.0, None)]),
        ("step: -1e308 loss: 2\n", [("loss", 2.0, None)]),
        ("step: nan, epoch: 9007199254740991, loss: 2\n", [("loss", 2.0, 9007199254740991)]),
        (f"Epoch {'9' * 400}/9\n1/1 0s - loss: 2\n", [("loss", 2.0, None)]),
        ("loss: 0.5\nloss: 0.25", [("loss", 0.5, None), ("loss", 0.25, None)]),
        ("the loss: 0.5 is low\n", []),
        ("loss: low\nhttp://host: 80/\n12: 5\nloss:0.5\n", []),
        ("Traceback: \n", []),
        (f"{'a: 1 ' * 5000}\n", []),
        (f"{'a: 1 - ' * 500}x\n", []),
        ("loss: \udcff\n".encode("utf-8", "surrogateescape").decode("latin-1"), []),
    ],
)
def test_a_line_of_nothing_but_names_and_numbers_has_values(text, expected):
    assert values(text) == expected


def test_keras_3_redraws_its_bar_and_the_end_of_an_epoch_counts():
    bar = "\x1b[1m{}/10\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m0s\x1b[0m 3ms/step - accuracy: {} - loss: {}"
    epoch = "Epoch {}/2\n" + "\r".join((bar.format(1, 0.1, 2.5), "\b" * 60, bar.format(10, 0.5, 1.5))) + "\n"
    text = epoch.format(1) + "\0" + epoch.format(2) + bar.format(10, 0.75, 1.25) + "\n"
    assert values(text) == [
        ("accuracy", 0.5, 1),
        ("loss", 1.5, 1),
        ("accuracy", 0.5, 2),
        ("loss", 1.5, 2),
        ("evaluate/accuracy", 0.75, 2),
        ("evaluate/loss", 1.25, 2),
    ]


def test_keras_2_and_bars_that_are_not_redrawn_have_values_too():
    text = (
        "Epoch 4/9\n100/100 [==============================] - 2s 20ms/step - loss: 0.5000 - val_loss: 0.6e-1\n"
        "Epoch 5/9\n100/100 - 2s - 20ms/step - loss: 0.25\n"
    )
    assert values(text) == [("loss", 0.5, 4), ("val_loss", 0.06, 4), ("loss", 0.25, 5)]


def test_the_definitions_of_a_job_count_beside_the_look_of_a_line():
    definitions = [("train:loss", re.compile(r"the loss is ([0-9.]+)"))]
    assert values("the loss is 0.5\nloss: 2\n", definitions) == [("train:loss", 0.5, None), ("loss", 2.0, None)]


PARTS = st.sampled_from(
    [
        "loss: 0.5",
        "step: 3",
        "Epoch 2/3",
        "10/10 0s - loss: 1.5",
        "a word",
        " ",
        "\n",
        "\n",
        ", ",
        "é: 1",
        "\xa0",
        "\r",
        "\x1b[1m",
    ]
)


@given(st.lists(PARTS, max_size=12).map("".join))
def test_a_block_has_the_values_of_its_lines(text):
    block, of_block, of_line = Block(0, "algo-1", 0, "stdout", text.encode()), StreamValues(()), StreamValues(())
    found = [value for line in block.lines() for value in of_line.of_line(line)]
    assert list(of_block.of_block(block)) == found
