"""What a job tells of itself while it runs, as data."""
