"""The batch script of a job, and what travels with it."""
