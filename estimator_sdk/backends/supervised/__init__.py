"""Jobs that a supervisor of ours owns, on this machine: started by a client, followed by any process."""
