"""Jobs on the user's machine: the supervisor that owns each, and the state that it leaves for others to read."""
