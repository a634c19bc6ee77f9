"""Hangs: how long ranks may be silent, how it is seen that they stand still, and what is said of it."""
