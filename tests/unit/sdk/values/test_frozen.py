import pytest

from estimator_sdk.values.frozen import FrozenMapping, freeze, thaw

VALUE = {"a": [1, {"b": [None, "x"]}], "c": {}}


def test_thaw_gives_back_what_was_frozen():
    assert thaw(freeze(VALUE)) == VALUE


def test_what_is_frozen_has_no_way_to_change_it():
    frozen = freeze(VALUE)
    assert isinstance(frozen, FrozenMapping) and isinstance(frozen["a"], tuple)
    with pytest.raises(TypeError):
        frozen["a"] = 1  # type: ignore[index]


def test_a_frozen_mapping_is_a_copy_equal_to_its_dict():
    original = {"a": 1, "b": 2}
    frozen = FrozenMapping(original)
    assert frozen == original and list(frozen) == ["a", "b"] and len(frozen) == 2 and repr(frozen) == repr(original)
    original["a"] = 3
    assert frozen["a"] == 1


def test_equal_mappings_have_equal_hashes_in_any_order():
    assert hash(FrozenMapping({"a": 1, "b": 2})) == hash(FrozenMapping({"b": 2, "a": 1}))
