"""The backend `slurm` on a real Slurm."""
