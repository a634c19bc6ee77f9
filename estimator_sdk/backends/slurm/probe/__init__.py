"""A job of two nodes that finds out what they have, for `estimator doctor --backend slurm --probe`."""
