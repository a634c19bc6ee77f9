"""What every room raises when it was given something that cannot work."""


class ConfigurationError(Exception):
    """The platform, or the job's description, gave the toolkit something it cannot work with."""
