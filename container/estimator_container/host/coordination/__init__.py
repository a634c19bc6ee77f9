"""What makes one job of many hosts: the first host, which decides, those that follow it, and how MPI spans them."""
