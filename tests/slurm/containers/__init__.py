"""The backend `slurm` on a cluster of containers, whose shared folder is a network file system."""
