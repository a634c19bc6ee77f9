"""Checkpoints: a folder of the script's, kept in a store as snapshots, and put back from there.

`docs/checkpoints.md` describes the format. What watches the folder and publishes is a process of its own, the agent.
"""
