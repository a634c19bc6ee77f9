"""The supervisor's side of the agents that fetch channels, keep checkpoints and upload outputs."""
