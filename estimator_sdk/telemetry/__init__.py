"""What a job tells of itself while it runs: its events in sentences, its metrics as data."""
