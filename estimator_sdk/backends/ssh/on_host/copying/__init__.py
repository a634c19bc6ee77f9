"""How files get from one machine to another: between the machines of a job, and to the machine of its client."""
