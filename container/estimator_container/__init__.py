"""What runs on each instance: reads the training contract, assembles the world, runs the script.

Standard library only; nothing here imports the SDK. Importing the package itself loads nothing.
"""

__version__ = "0.1.0"

# What scripts import, `estimator_container.metrics` and `estimator_container.data`, lives in the room that it is of.
__path__ += [f"{__path__[0]}/{room}/for_scripts" for room in ("telemetry", "training")]
