"""What a script imports as `estimator_container.data`, so that the name stays short wherever the code lives."""
