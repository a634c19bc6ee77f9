"""The user's code on its way to the hosts: what of it is taken, its bundle, and where that is kept."""
