"""What any process of a host is made of: event loop, child processes, sockets, private folders, limits."""
