"""Secrets in what a user passes: hidden where an estimator is shown, warned of where others can see them."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from estimator_container.logs.masking import HIDDEN, in_value, in_words

from ..errors import InvalidArgument

if TYPE_CHECKING:
    from ..plan.plan import Plan
    from ..spec.job_document import JobDocument


def representation(estimator: Any) -> str:  # noqa: ANN401 - a data class
    """The call that makes an estimator, as far as it says anything; a notebook shows it."""
    given = {each.name: value for each in fields(estimator) if (value := getattr(estimator, each.name)) != each.default}
    shown = in_value(given)
    assert isinstance(shown, dict)
    return f"{type(estimator).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def warn_of_secrets(plan: Plan) -> None:
    """Warn of secrets that others can see when the job runs, or who may describe it: those in its arguments."""
    words = [word for command in (plan.command, *(step.command for step in plan.steps)) for word in command]
    given = plan.decoded.script.items()
    found = [f"hyperparameters[{name!r}]" for name, value in given if _has_secret(name, value)]
    if not found and in_words(words) == tuple(words):
        return
    where = "in the job's description" if plan.region else "among arguments, which every user of the machine can see"
    how = "let the script fetch it with the job's role, for example from AWS Secrets Manager"
    if not plan.region:
        how = "pass it in environment=, and let the script read os.environ"
    what = " and ".join(found) or "a word of the command"
    warnings.warn(f"{what}: this looks like a secret, and it would be visible {where}; {how}", stacklevel=4)


def _has_secret(name: str, value: object) -> bool:
    return in_value({name: value}) != {name: value}


def refuse_hidden(spec: JobDocument) -> None:
    """Raises InvalidArgument for a document that was saved without its secrets, because their values are missing."""
    kept = (("Environment", spec.environment), ("HyperParameters", spec.hyperparameters))
    for member, values in kept:
        for name, value in (values or {}).items():
            if HIDDEN in value:
                what = f"{member}[{name!r}] is {HIDDEN}: the document was saved without its secrets"
                raise InvalidArgument(member, f"{what}; replace it with the value")
