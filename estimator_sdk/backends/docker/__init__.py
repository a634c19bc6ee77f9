"""Local Docker mode: every host is a container."""
