"""What happens on a host before its ranks start: the code, its requirements, the channels."""
