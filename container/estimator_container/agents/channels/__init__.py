"""Input channels: which objects are each host's, and how they get there, as files or through a pipe.

What fetches them is a process of its own, the agent, so that its owner can stop it at any moment.
"""
