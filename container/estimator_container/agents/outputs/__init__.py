"""What a job leaves, put into a store: files when it has ended, and what settles in a folder while it runs."""
