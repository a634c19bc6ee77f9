"""What runs in the allocation of a job: its supervisor's program, its nodes, and its hosts as steps on them."""
