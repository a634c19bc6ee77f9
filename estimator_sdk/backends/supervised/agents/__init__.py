"""The supervisor's side of the agents that bring channels, keep checkpoints and take outputs away."""
