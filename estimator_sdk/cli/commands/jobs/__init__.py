"""The commands that ask for, or look at, jobs that were started."""
