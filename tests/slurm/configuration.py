"""The slurm.conf of the cluster that tests use: everything in one folder, and nothing that another cluster has."""

from __future__ import annotations

import os
import pwd
import random
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.ports import free_ports

NODES = tuple(f"n{number}" for number in range(1, 13))
CPUS = 4  # of each node, whatever this machine has

EVERYWHERE = """
AuthType=auth/munge
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
MpiDefault=none
ReturnToService=2
KillWait=10
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
SlurmctldDebug=info
SlurmdDebug=info
"""
"""What the clusters of all tests have in common."""
CONFIGURATION = """
ClusterName={folder.name}
SlurmctldHost={machine}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge/socket,cred_expire={requeue_seconds}
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed.log
MinJobAge=86400
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
TmpFS=/tmp
SlurmdTimeout={slurmd_timeout}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
"""
PARTITIONS = """
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=other Nodes={other} MaxTime=INFINITE State=UP
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
PartitionName=short Nodes=ALL MaxTime=20 State=UP
"""
FEW_NODES = NODES_OF_OTHER = NODES[:4]
REQUEUE_SECONDS = 10
"""For so long a job that was put back in the queue stays there, until what allowed its last start is void."""


def text(folder: Path, nodes: Sequence[str], slurmd_timeout: int) -> str:
    """A slurm.conf with free ports, and addresses of nodes that no other cluster is likely to have.

    A node that has not answered for `slurmd_timeout` seconds is down.
    """
    machine = socket.gethostname().partition(".")[0]
    port, *ports = free_ports(1 + len(nodes))
    lines = EVERYWHERE + CONFIGURATION.format(
        folder=folder,
        machine=machine,
        port=port,
        user=pwd.getpwuid(os.getuid()).pw_name,
        requeue_seconds=REQUEUE_SECONDS,
        slurmd_timeout=slurmd_timeout,
    )
    network = random.randint(16, 250)
    for number, (node, port) in enumerate(zip(nodes, ports, strict=True), 1):
        place = f"NodeHostname={machine} NodeAddr=127.{network}.0.{number} Port={port}"
        lines += f"NodeName={node} {place} CPUs={CPUS} RealMemory=16000 State=UNKNOWN\n"
    return lines + PARTITIONS.format(other=",".join(NODES_OF_OTHER))
