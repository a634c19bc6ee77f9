"""The Docker engine of this machine, and the containers of one job on it."""
