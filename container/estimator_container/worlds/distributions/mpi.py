"""An MPI world, which Open MPI's own daemons start."""

from ..mpi.world import from_reserved as world

__all__ = ["world"]
