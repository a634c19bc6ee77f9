"""Which jobs use the slots of a machine: leases on each, and how a job gets those of all its machines or none."""
