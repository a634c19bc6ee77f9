"""How a keeper runs its host: as a process of the machine, or in a container of the machine's own Docker."""
