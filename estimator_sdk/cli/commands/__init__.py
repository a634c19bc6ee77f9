"""One module for each command of `estimator`."""
