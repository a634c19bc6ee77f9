"""The project's speed, beside the peers and beside the least that the machine needs: `python -m benchmarks --help`."""
