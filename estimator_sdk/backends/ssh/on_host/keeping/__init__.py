"""The program that keeps a host: what it needs before, and what it removes after others that were killed."""
