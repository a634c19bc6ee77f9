"""Run a Python function as a job: it travels with the code, and its return value or exception comes back."""
