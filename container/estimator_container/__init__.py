"""What runs on each instance: reads the training contract, assembles the world, runs the script.

Standard library only; nothing here imports the SDK. Importing the package itself loads nothing.
"""

__version__ = "0.1.0"
