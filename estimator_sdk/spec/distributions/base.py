"""What all distributions have in common: options that are checked one by one, and told to the hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Literal, TypeVar

from estimator_container.contract.reserved import Reserved

from ...errors import InvalidArgument
from ...values.naming import shown, suggestion

Framework = Literal["tensorflow", "pytorch"]
MAX_RANKS = 1 << 18
"""Of a whole job."""
D = TypeVar("D", bound="Distribution")


@dataclass(frozen=True)
class Distribution:
    """What `distribution=` says of one; its options are the fields of its class."""

    name: ClassVar[str]
    """As users write it, and as its module is called, here and in the toolkit."""
    framework: ClassVar[Framework | None] = None
    """The framework whose image a job gets that names none; None is the plain image."""
    rank_variable: ClassVar[str] = "RANK"
    """Where a script finds its rank."""

    enabled: bool
    """False runs the script once on each host, as no `distribution` does."""

    def __init_subclass__(cls) -> None:
        cls.name = cls.__module__.rpartition(".")[2]

    @classmethod
    def from_options(cls: type[D], given: object) -> D:
        """Raises InvalidArgument for an option that is unknown, and for one of the wrong type or range."""
        example = f'{{"{cls.name}": {{"enabled": True}}}}'
        if not isinstance(given, Mapping):
            raise refused(f"[{cls.name!r}]", f"must be a dict, as in {example}, not {shown(given)}")
        known = [each.name for each in fields(cls)]
        for key in given:
            if key not in known:
                raise refused(f"[{cls.name!r}][{shown(key)}]", f"is not known; {suggestion(key, known)}")
        enabled = given.get("enabled")
        if not isinstance(enabled, bool):
            got = shown(enabled) if "enabled" in given else "absent"
            raise refused(f"[{cls.name!r}]['enabled']", f"must be True or False, but is {got}; write {example}")
        made = cls(**{key: value for key, value in given.items() if value is not None})
        made.check()
        return made

    def check(self) -> None:
        """Raises InvalidArgument for an option that cannot be used."""

    def added_to(self, reserved: Reserved) -> Reserved:
        """The reserved hyperparameters of a job, and those that tell its hosts of this distribution."""
        return replace(reserved, distributions={self.name: self.enabled})


@dataclass(frozen=True)
class ManyOnAHost(Distribution):
    """One whose hosts run as many processes as one likes."""

    processes_per_host: int | None = None
    """None means one for each GPU of the instance type, else one."""

    def check(self) -> None:
        given, where = self.processes_per_host, f"[{self.name!r}]['processes_per_host']"
        if given is None:
            return
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            what = f"must be a whole number of at least 1, such as 2, not {shown(given)} ({type(given).__name__})"
            raise refused(where, f"{what}; leave it out for one process per GPU")
        if given > MAX_RANKS:
            what = f"is {shown(given)}, but a job has at most {MAX_RANKS:,} processes in all"
            raise refused(where, f"{what}; lower it")

    def added_to(self, reserved: Reserved) -> Reserved:
        return replace(super().added_to(reserved), processes_per_host=self.processes_per_host)


def refused(where: str, what: str) -> InvalidArgument:
    """The error about a part of `distribution=`; `where` is its subscript, such as `['mpi']`, or empty."""
    return InvalidArgument(f"distribution{where}", f"distribution{where} {what}")
