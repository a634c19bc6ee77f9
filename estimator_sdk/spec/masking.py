"""Hide secrets in what is shown and kept of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from estimator_container.contract import hyperparameters as container_hp
from estimator_container.logs.masking import in_text, in_value, in_variables


def in_hyperparameters(encoded: Mapping[str, str]) -> dict[str, str]:
    """The hyperparameters, as they are on disk, without secrets; those without any stay exactly as they are."""
    decoded = container_hp.decode(encoded)
    shown = in_value(decoded)
    assert isinstance(shown, dict)
    return {name: text if shown[name] == decoded[name] else json.dumps(shown[name]) for name, text in encoded.items()}


def in_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same CreateTrainingJob document without secrets."""
    shown = {member: _in_member(value) for member, value in document.items()}
    if document.get("Environment"):
        shown["Environment"] = in_variables(document["Environment"])
    if document.get("HyperParameters"):
        shown["HyperParameters"] = in_hyperparameters(document["HyperParameters"])
    return shown


def _in_member(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Names of the service's own members tell nothing: a `KmsKeyId` is no secret."""
    if isinstance(value, str):
        return in_text(value)
    if isinstance(value, Mapping):
        return {member: _in_member(each) for member, each in value.items()}
    return [_in_member(each) for each in value] if isinstance(value, (list, tuple)) else value
