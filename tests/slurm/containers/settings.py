"""How Slurm is set up on the cluster of containers."""

from __future__ import annotations

from collections.abc import Mapping

from tests.slurm.configuration import EVERYWHERE, REQUEUE_SECONDS

CONFIGURATION = """
ClusterName=containers
SlurmctldHost=controller({network}.2)
SlurmUser=root
SlurmdUser=root
AuthInfo=cred_expire={requeue_seconds}
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=controller
GresTypes=gpu
"""
DEVICES = "Name=gpu File=/dev/no-gpu[0-1]"
"""Slurm grants what the nodes have as GPUs, which are other names of /dev/null."""
ACCOUNTING = """
AuthType=auth/munge
DbdHost=localhost
SlurmUser=root
StorageType=accounting_storage/mysql
StorageUser=root
StorageLoc=slurm_acct_db
LogFile=/var/log/slurmdbd.log
PidFile=/run/slurmdbd.pid
"""
PARTITIONS = """
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""


def slurm(network: str, nodes: Mapping[str, str], remembered_seconds: int) -> str:
    """The text of slurm.conf; `nodes` says at which address each is."""
    machines = (f"NodeAddr={address} CPUs=4 RealMemory=16000 Gres=gpu:2" for address in nodes.values())
    return "".join(
        (
            EVERYWHERE,
            CONFIGURATION.format(network=network, requeue_seconds=REQUEUE_SECONDS),
            f"MinJobAge={remembered_seconds}\nSlurmdTimeout=30\n",
            *(f"NodeName={node} {machine}\n" for node, machine in zip(nodes, machines, strict=True)),
            PARTITIONS,
        )
    )
