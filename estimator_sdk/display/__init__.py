"""A job as people look at it: live in a notebook's cell, and as text elsewhere."""
