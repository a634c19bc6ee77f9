"""Hide secrets in what is shown and kept of a job, and warn of those that others can see when it runs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from estimator_container.contract import hyperparameters as container_hp
from estimator_container.logs.masking import HIDDEN, in_text, in_value, in_variables, in_words

from .errors import InvalidArgument

if TYPE_CHECKING:
    from .estimator import Estimator
    from .plan import Plan
    from .spec import JobSpec


def representation(estimator: Estimator) -> str:
    """The call that makes an estimator, as far as it says anything; a notebook shows it."""
    given = {each.name: value for each in fields(estimator) if (value := getattr(estimator, each.name)) != each.default}
    shown = in_value(given)
    assert isinstance(shown, dict)
    return f"{type(estimator).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def in_hyperparameters(encoded: Mapping[str, str]) -> dict[str, str]:
    """The same hyperparameters, as they are on disk, without secrets; those that hold none are not written anew."""
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


def warn_of_secrets(plan: Plan) -> None:
    """Warn of secrets that others can see when the job runs, or who may describe it: those in its arguments."""
    words = [word for command in (plan.command, *(step.command for step in plan.steps)) for word in command]
    given = container_hp.for_the_script(container_hp.decode(plan.hyperparameters))
    found = [f"hyperparameters[{name!r}]" for name, value in given.items() if _has_secret(name, value)]
    if not found and in_words(words) == tuple(words):
        return
    where = "what the job's description shows" if plan.region else "arguments, which every user of the machine can see"
    how = "let the script fetch it with the job's role, from AWS Secrets Manager for one"
    if not plan.region:
        how = "pass it in environment=, and let the script read os.environ"
    what = " and ".join(found) or "a word of the command"
    warnings.warn(f"{what}: this looks like a secret, and it would be among {where}; {how}", stacklevel=4)


def _has_secret(name: str, value: object) -> bool:
    return in_value({name: value}) != {name: value}


def refuse_hidden(spec: JobSpec) -> None:
    """Raises InvalidArgument for a document that was kept without its secrets: what hides one is no value."""
    kept = (("Environment", spec.environment), ("HyperParameters", spec.hyperparameters))
    for member, values in kept:
        for name, value in (values or {}).items():
            if HIDDEN in value:
                what = f"{member}[{name!r}] is {HIDDEN}: the document was kept without its secrets"
                raise InvalidArgument(member, f"{what}; put the value in its place")
