"""Programs that move data beside a job: input channels, checkpoints, outputs, and the code."""
