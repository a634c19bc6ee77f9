"""The life of one host, from reading its configuration to its exit code, as the first host or as another."""
