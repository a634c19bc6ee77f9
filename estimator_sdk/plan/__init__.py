"""A job resolved for one backend: nothing is left to decide."""
