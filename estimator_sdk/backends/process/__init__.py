"""The embedded default: every host is a process tree of this machine."""
