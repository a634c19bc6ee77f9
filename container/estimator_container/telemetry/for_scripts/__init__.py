"""What a script imports as `estimator_container.metrics`, so that the name stays short wherever the code lives."""
