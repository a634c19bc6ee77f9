"""The metrics, one a file, in the order in which they are taken."""

from . import (
    allreduce,
    ending,
    faults,
    fetching,
    first_line,
    hello_world,
    keras_step,
    log_plane,
    publishing,
    slowdown,
    starting,
    training,
    world,
)

MODULES = (starting, first_line, world, ending, hello_world, faults)
MODULES += (log_plane, publishing, slowdown, fetching, allreduce, training, keras_step)
METRICS = tuple(module.METRIC for module in MODULES)
