"""What the platform tells a host: names, files, hyperparameters and variables of SageMaker's container contract."""
