"""How a distribution makes a world of the ranks of all hosts: one module for each."""
