"""Which node each host of a job is on, and which nodes are spare."""

from __future__ import annotations

from collections.abc import Sequence

from .nodes import Node


class Places:
    """So many hosts on each node, in the order of both; what is left over is spare."""

    def __init__(self, hosts: Sequence[str], nodes: Sequence[Node], per_node: int) -> None:
        """The nodes must be enough for the hosts."""
        self._own = nodes[0]
        self._nodes = list(nodes)
        self._per_node = per_node
        self._at = {host: nodes[index // per_node] for index, host in enumerate(hosts)}
        self._slots = {host: index % per_node for index, host in enumerate(hosts)}

    def node_of(self, host: str) -> Node:
        """Where a host is, or is about to be."""
        return self._at[host]

    def hosts_on(self, node: Node) -> list[str]:
        """The hosts that are there, in their order; none on a node that is spare."""
        return [host for host, at in self._at.items() if at == node]

    @property
    def addresses(self) -> dict[str, str]:
        """Host -> the address of its node."""
        return {host: node.address for host, node in self._at.items()}

    def hosts_on_machine(self, host: str) -> int:
        """How many hosts share the machine of this one, itself included."""
        machine = self._at[host].machine
        return sum(node.machine == machine for node in self._at.values())

    def slot_of(self, host: str) -> int:
        """Which of the places on its node the host has, from 0; no two hosts there have the same."""
        return self._slots[host]

    def move(self, host: str) -> bool:
        """Put a host that is lost on a spare node; returns whether there is one.

        The node of this process is there, so its hosts stay. The node that is left counts as the last of the spare
        ones: what was lost may have been the host alone.
        """
        left = self._at[host]
        others = list(self._at.values())
        spare = next((node for node in self._nodes if node != left and others.count(node) < self._per_node), None)
        if left == self._own or spare is None:
            return False
        taken = {self._slots[other] for other, node in self._at.items() if node == spare}
        self._at[host], self._slots[host] = spare, min(set(range(self._per_node)) - taken)
        if left in self._nodes:
            self._nodes.remove(left)
            self._nodes.append(left)
        return True

    def drop(self, node: Node) -> None:
        """Put nothing on a node any more, because it is gone."""
        if node in self._nodes:
            self._nodes.remove(node)
