"""The hosts' connections: who may connect, how each side proves itself, and how a lost host is noticed."""
