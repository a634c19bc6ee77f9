"""An MPI world that Open MPI's own daemons start."""

from ..mpi import world

__all__ = ["world"]
