"""Worlds that Open MPI starts: the user's options, the command lines of its programs, what they call and say."""
