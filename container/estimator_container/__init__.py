"""What runs on each instance: reads the training contract, assembles the world, runs the script.

Standard library only; nothing here imports the SDK. Importing the package itself loads nothing.
"""

__version__ = "0.1.0"

# `estimator_container.metrics`, which scripts import, lives beside what else there is of telemetry.
__path__.append(f"{__path__[0]}/telemetry/for_scripts")
