"""What the platform and a host tell each other: names, files and variables of SageMaker's contract, and events."""
