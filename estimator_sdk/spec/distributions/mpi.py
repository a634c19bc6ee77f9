"""`{"mpi": {"enabled": True}}`: the script is run by mpirun."""

from __future__ import annotations

from dataclasses import dataclass, replace

from estimator_container.contract.hyperparameters import can_be_passed
from estimator_container.contract.reserved import Reserved

from ...values.naming import shown
from .base import ManyOnAHost, refused


@dataclass(frozen=True)
class Mpi(ManyOnAHost):
    """So many processes on each host, which are one MPI world."""

    rank_variable = "OMPI_COMM_WORLD_RANK"

    custom_mpi_options: str = ""
    """Options for mpirun, split into words as a shell would."""

    def check(self) -> None:
        super().check()
        given, where = self.custom_mpi_options, "['mpi']['custom_mpi_options']"
        if not isinstance(given, str):
            what = f"must be a str such as '-mca btl self,tcp', not {shown(given)} ({type(given).__name__})"
            raise refused(where, what)
        if not can_be_passed(given):
            raise refused(where, "holds a NUL or an unpaired surrogate, which no command line can carry; remove it")
        import shlex

        try:
            shlex.split(given)
        except ValueError as error:
            raise refused(where, f"cannot be split into words: {error}; check the quotes in {given!r}") from None

    def added_to(self, reserved: Reserved) -> Reserved:
        return replace(super().added_to(reserved), custom_mpi_options=self.custom_mpi_options)


Options = Mpi
