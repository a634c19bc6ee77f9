from __future__ import annotations

import functools
import json
import os
import sys
import threading
from contextlib import contextmanager

import cloudpickle
import pytest

from estimator_sdk.functions.on_host import culprit, payload


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def damaged(data: bytes, **changes) -> bytes:
    line, _, body = data.partition(b"\n")
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n" + body


def test_what_is_packed_comes_back_with_the_variables_around_it():
    rate = 0.5
    assert payload.unpack("function", payload.pack("function", lambda number: number * rate))(4) == 2.0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda data: damaged(data, python="2.7"), "pickled by Python 2.7, but this is Python .*use the same on both"),
        (lambda data: damaged(data, cloudpickle="1.6.0"), "by cloudpickle 1.6.0, but this is .*same major version"),
        (
            lambda data: damaged(data, format=2),
            "a function in format 1 was expected, but this is a function in format 2",
        ),
        (
            lambda data: damaged(data, kind="exception"),
            "a function in format 1 was expected, but this is an exception in format 1",
        ),
        (lambda data: damaged(data, sha256="0" * 64), "its checksum is wrong: it was damaged"),
        (lambda data: data[:-1] + bytes([data[-1] ^ 1]), "its checksum is wrong: it was damaged"),
        (lambda data: data[:-1], r"has (\d+) bytes instead of (\d+), or its checksum is wrong"),
        (lambda data: data + b"\0", "its checksum is wrong"),
        (lambda data: damaged(data, bytes="many"), "no readable header"),
        (lambda data: damaged(data, python=None), "no readable header"),
        (lambda data: b"", "no readable header"),
        (lambda data: b"[1]\n", "no readable header"),
        (lambda data: b"[" * 100_000 + b"\n", "no readable header"),
        (lambda data: cloudpickle.dumps(1), "no readable header"),
    ],
)
def test_what_is_not_as_it_was_packed_is_refused_and_never_unpickled(change, sentence, tmp_path):
    bomb = tmp_path / "unpickled"
    data = payload.pack("function", Bomb(bomb))
    with pytest.raises(payload.PayloadError, match=sentence):
        payload.unpack("function", change(data))
    assert not bomb.exists()
    payload.unpack("function", data)
    assert bomb.exists()


def test_another_minor_version_of_cloudpickle_is_fine():
    assert payload.unpack("function", damaged(payload.pack("function", 1), cloudpickle="3.999.0")) == 1


@contextmanager
def by_value():
    """As a notebook's functions are: this module cannot be imported elsewhere."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


lock = threading.Lock()
settings = {"rate": 1, "deep": [0, {"lock": lock}]}


def uses_a_global():
    return settings["deep"]


def uses_another():
    return uses_a_global()


def has_a_default(given=lock):
    return given


def around():
    inner = threading.Lock()
    return lambda: inner


class Model:
    def __init__(self):
        self.session = lock

    def fit(self):
        return self.session


@pytest.mark.parametrize(
    ("value", "name", "owner"),
    [
        (uses_a_global, "settings['deep'][1]['lock']", "uses_a_global"),
        (has_a_default, "given", "has_a_default"),
        (around(), "inner", "<lambda>"),
        (Model(), "main.session", ""),
        (Model().fit, "self.session", "fit"),
        (functools.partial(len, lock), "main.args[0]", ""),
        (functools.partial(dict, key=Model()), "key.session", "main"),
        (lock, "main", ""),
    ],
)
def test_the_variable_that_cannot_be_pickled_is_named(value, name, owner):
    with by_value():
        found = culprit.find("main", value)
    assert (found.name, found.owner, found.value.__class__) == (name, owner, type(lock))


def test_the_variable_of_a_function_that_is_called_is_named():
    with by_value():
        sentence = culprit.find("main", uses_another).sentence()
    assert sentence == (
        "the variable \"settings['deep'][1]['lock']\" of uses_a_global() holds a _thread.lock: "
        "cannot pickle '_thread.lock' object"
    )


def test_nothing_is_named_where_all_can_be_pickled():
    assert culprit.find("main", {"rate": 1}) is None


def test_what_contains_itself_and_cannot_be_pickled_is_named_too():
    loop = {"lock": lock}
    loop["self"] = loop
    assert culprit.find("loop", loop).name == "loop['lock']"
