"""From the arguments of an estimator to a running job."""
