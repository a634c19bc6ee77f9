"""What the console knows of the jobs, kept up to date by what changes: the table, and the story of each open one."""
