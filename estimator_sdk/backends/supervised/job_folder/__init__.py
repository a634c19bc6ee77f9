"""What is kept of a job in its folder, and read from any process: its state, its logs, who supervises it."""
