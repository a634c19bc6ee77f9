"""How a machine is reached: the system's OpenSSH, and the software that is brought there."""
