"""The backend `ssh`, on a pool of real servers."""
