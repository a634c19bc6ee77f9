"""The process that owns a job, from its first attempt to its archives."""
