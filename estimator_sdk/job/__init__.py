"""A job that was started, as its user sees it."""
