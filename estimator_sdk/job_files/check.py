"""Hold a job file against the schema, and say in a sentence, with its line, where it does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from estimator_container.logs.masking import is_secret
from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError

from ..values.naming import nearest, suggestion
from . import schema
from .document import Document, Place

_KINDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
_LIMITS = {
    "minimum": ("at least", "raise"),
    "maximum": ("at most", "lower"),
}


def check(document: Document) -> None:
    """Raises InvalidArgument for the first line that is not of the schema."""
    validator = Draft7Validator(schema.published())
    errors = (part for error in validator.iter_errors(document.value) for part in _parts(error))
    found = sorted((document.line(place), place, message) for place, message in map(_said, errors))
    if found:
        _, place, message = found[0]
        raise document.refuse(place, path(place), message)


def path(place: Place) -> str:
    """
    >>> path(("train", "run", 0, "name"))
    'train.run[0].name'
    """
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place).lstrip(".")


def _parts(error: ValidationError) -> Iterator[ValidationError]:
    """The error, or where one of several forms is of the value's own type, what is wrong in that one."""
    forms: dict[object, list[ValidationError]] = {}
    for each in error.context:
        forms.setdefault(each.relative_schema_path[0], []).append(each)
    meant = [errors for errors in forms.values() if not any(_is_of_another_type(each) for each in errors)]
    if len(meant) == 1:
        for each in meant[0]:
            yield from _parts(each)
    else:
        yield error


def _is_of_another_type(error: ValidationError) -> bool:
    """Whether an error is that the value is of another type than the form."""
    return error.validator == "type" and not error.relative_path


def _said(error: ValidationError) -> tuple[Place, str]:
    place: Place = tuple(error.absolute_path)
    value, limit, where = error.instance, error.validator_value, path(tuple(error.absolute_path)) or "the job file"
    kind = error.validator
    if kind == "additionalProperties":
        known = list(error.schema["properties"])
        key = next(each for each in value if each not in known)
        around = f" in {where}" if place else ""
        return (*place, key), f"the key {key!r} is not known{around}; {suggestion(key, known)}"
    if kind == "required":
        missing = next(each for each in limit if each not in value)
        return place, f"{where} has no `{missing}`, which is required; add it"
    if kind == "dependencies":
        key, needed = next(
            (key, name) for key, names in limit.items() for name in names if key in value and name not in value
        )
        return (*place, key), f"{key} has no effect without {needed}; give both, or neither"
    if kind == "not":
        return place, f"{where} is not supported; {str(error.schema['description']).partition(': ')[2].rstrip('.')}"
    if kind in ("type", "anyOf", "enum"):
        return place, _of_kind(where, error.schema, value)
    if kind in ("minItems", "minLength"):
        if place[-1] in ("project", "name"):
            return place, f"{where} is empty; write a name, such as 'digits'"
        return place, f"{where} is empty, so there is nothing to run; write a command such as `python train.py`"
    how, way_out = _LIMITS[str(kind)]
    return place, f"{where} must be {how} {limit}, not {value}; {way_out} it"


def _of_kind(where: str, form: Mapping[str, Any], value: object) -> str:
    wanted = _wanted(form)
    if value is None:
        return f"{where} has no value, but must be {wanted}; write one, or remove the key"
    return f"{where} must be {wanted}, not {_shown(value, where)}; {_way_out(form, wanted, value)}"


def _wanted(form: Mapping[str, Any]) -> str:
    if "enum" in form:
        return " or ".join(map(repr, form["enum"]))
    if "anyOf" in form:
        return " or ".join(dict.fromkeys(_wanted(each) for each in form["anyOf"]))
    if "$ref" in form:
        return "a mapping"
    kinds = form["type"] if isinstance(form["type"], list) else [form["type"]]
    keys = list(form.get("properties", ()))
    return " or ".join(_KINDS[kind] for kind in kinds) + (f" of {', '.join(keys)}" if 0 < len(keys) < 5 else "")


def _shown(value: object, where: str) -> str:
    if is_secret(where.rpartition(".")[2], value):
        return "what it is"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return f"the string {value!r}" if isinstance(value, str) else repr(value)


def _way_out(form: Mapping[str, Any], wanted: str, value: object) -> str:
    """The commonest slip is quotes around what is no string, or none around what is one."""
    if isinstance(value, str) and "enum" in form:
        near = nearest(value, form["enum"])
        return f"did you mean {near!r}?" if near else "choose one of them"
    if isinstance(value, str) and "number" in wanted and value.strip().lstrip("+-").replace(".", "", 1).isdigit():
        return "remove the quotes"
    if isinstance(value, str) and "true or false" in wanted:
        return "write true or false, without quotes"
    if not isinstance(value, (str, list, dict)) and "a string" in wanted:
        return "put it in quotes"
    return "docs/job_files.md has examples"
