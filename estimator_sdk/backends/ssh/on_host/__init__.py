"""What runs on the machines of a pool, and needs nothing there but Python's standard library."""
