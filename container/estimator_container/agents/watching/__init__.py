"""A folder that a script writes to: news of changes, what it holds at one moment, and who is still writing."""
