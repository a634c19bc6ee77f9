"""The names and paths that a training image and its platform agree on.

They are those of Amazon SageMaker training, as the service documents them and as the
`sagemaker-training` package 5.1.4 implements them, and a few of our own, which start with `ESTIMATOR_`.
"""

from __future__ import annotations

import os
from typing import NamedTuple

BASE_DIR_VARIABLE = "SAGEMAKER_BASE_DIR"
DEFAULT_BASE_DIR = "/opt/ml"
HOMOGENEOUS_GROUP = "homogeneousCluster"  # the one group of a job whose instances are all of one type

# The schemes of URIs of stores, which `storage.open_store` opens: `file:///folder`, and the others with a bucket.
FILE_SCHEME = "file"
BUCKET_SCHEMES = ("s3",)

PROGRAM_VARIABLE = "SAGEMAKER_PROGRAM"  # the entry point; counts more than PROGRAM
JOB_NAME_VARIABLE = "TRAINING_JOB_NAME"
# An image's own variable: a function, as `module:function`, that runs where the job names no program.
TRAINING_MODULE = "SAGEMAKER_TRAINING_MODULE"

# Reserved hyperparameters that messages speak of; all of them are in `reserved.Reserved`.
PROGRAM = "sagemaker_program"
SUBMIT_DIRECTORY = "sagemaker_submit_directory"
NUM_PROCESSES = "sagemaker_mpi_num_processes"

EXIT_OK = 0
EXIT_USER_FAILURE = 1
EXIT_FRAMEWORK_ERROR = 2
EXIT_NO_RETRY = 93  # of a script that would only fail again: no other attempt follows
EXIT_STOPPED = 143  # 128 + SIGTERM, as a shell reports it

FAILURE_TEXT_LIMIT = 1024  # characters of output/failure that the platform shows

# What a platform of ours tells the toolkit. None of it reaches the script.
HOST_ADDRESSES = "ESTIMATOR_HOST_ADDRESSES"  # JSON: host -> "address" or "address:port"
LISTEN_FD = "ESTIMATOR_LISTEN_FD"  # a listening socket that this host inherits
LIFELINE_FD = "ESTIMATOR_LIFELINE_FD"  # a pipe whose end of file means: the platform is gone
SCRATCH_DIR = "ESTIMATOR_SCRATCH_DIR"  # a short-named private folder for sockets and MPI's own files
SHARED_MEMORY_DIR = "ESTIMATOR_SHARED_MEMORY_DIR"  # a private folder in memory, which the ranks of the host share
HOSTS_PER_MACHINE = "ESTIMATOR_HOSTS_PER_MACHINE"  # how many hosts share this machine's CPUs and name
GPU_SHARE = "ESTIMATOR_GPU_SHARE"  # "I/N": of the GPUs that this host sees, the share of number I of N, from 0
INTERFACE = "ESTIMATOR_INTERFACE"  # the network interface that ranks use between hosts, whichever has their address
TRANSPORT = "ESTIMATOR_TRANSPORT"  # one of TRANSPORTS, for MPI between machines
WORLD_TIMEOUT = "ESTIMATOR_WORLD_TIMEOUT"  # seconds to wait for the other hosts
# Where a platform waits for hosts that are on other machines: "address:port". Such a platform is itself run by a
# scheduler, and SIGTERM is the scheduler's, which every process of the host has had; its own word comes by the line.
PLATFORM_ADDRESS = "ESTIMATOR_PLATFORM_ADDRESS"
RESTARTS = "ESTIMATOR_RESTARTS"  # how many attempts of the job came before the one that this host begins with
MAX_RESTARTS = "ESTIMATOR_MAX_RESTARTS"  # how many may follow the first
HANG_FLOOR = "ESTIMATOR_HANG_FLOOR"  # the least number of seconds of silence that is learnt to be one of a hang
STOP_TIMEOUT = "ESTIMATOR_STOP_TIMEOUT"  # seconds between SIGTERM and SIGKILL
HOROVOD_KERAS3 = "ESTIMATOR_HOROVOD_KERAS3"  # "off": Horovod's names stay as they are on Keras 3; for the script
DRIFT_GUARD = "ESTIMATOR_DRIFT_GUARD"  # "off", or "warn", which ends no job for ranks that differ; for the script
TELEMETRY = "ESTIMATOR_TELEMETRY"  # "off": hosts do not measure themselves; for the script
DOCTOR = "ESTIMATOR_DOCTOR"  # what is different in a trial of the doctor, see `training.trials.words`; for the script
CONSOLE = "ESTIMATOR_CONSOLE"  # "off": somebody reads the frames, so nothing is shown on standard output
OVERLAY_DIR = "ESTIMATOR_OVERLAY_DIR"  # where requirements are installed instead of the interpreter's own
KEPT_ENVIRONMENTS = "ESTIMATOR_KEPT_ENVIRONMENTS"  # a folder of this machine's, in which they are kept between jobs
# Channels of ours, for platforms that bring nothing else to a host. The script is told of none of them.
CODE_CHANNEL = "estimator-code"  # the code bundle
WORLD_CHANNEL = "estimator-world"  # the secret that the hosts of one job share
OUR_CHANNELS = (CODE_CHANNEL, WORLD_CHANNEL)
WORLD_SECRET_FILE = "worldsecret"
TRUST_NETWORK = "ESTIMATOR_TRUST_NETWORK"  # "1": the user says that nobody else reaches the hosts' network
SECRET_BYTES = 32
PLATFORM_VARIABLES = frozenset(
    {
        HOST_ADDRESSES,
        LISTEN_FD,
        LIFELINE_FD,
        SCRATCH_DIR,
        SHARED_MEMORY_DIR,
        HOSTS_PER_MACHINE,
        GPU_SHARE,
        INTERFACE,
        TRANSPORT,
        WORLD_TIMEOUT,
        PLATFORM_ADDRESS,
        RESTARTS,
        MAX_RESTARTS,
        HANG_FLOOR,
        STOP_TIMEOUT,
        CONSOLE,
        OVERLAY_DIR,
        KEPT_ENVIRONMENTS,
    }
)

TCP, FABRIC = TRANSPORTS = ("tcp", "fabric")  # with the second one, Open MPI chooses what it talks over
DEFAULT_WORLD_TIMEOUT = 300.0  # ours; as long as `torch.distributed.TCPStore` waits for others unless it is told
DEFAULT_STOP_TIMEOUT = 120.0  # what SageMaker grants, "Stop a Training Job" in its API reference
DEFAULT_HANG_TIMEOUT = 1800.0  # ours; the default `timeout` of `torch.distributed.init_process_group` on Gloo
DEFAULT_HANG_FLOOR = 30.0  # ours; shorter silences are as likely those of a busy machine
SCRIPT = "script"  # in names of files in the place of a rank, where a host runs the script without a world
STEPS_PREFIX = "steps-"  # of the names of the files in which ranks count their training steps
WORLD_PORT = 7776  # where a first host listens for the others when it inherited no socket


def name_of_rank(rank: int | str | None) -> str:
    """A rank in names of files, as its number or its variable gives it. Raises ValueError for another text.

    >>> name_of_rank("3"), name_of_rank(None)
    ('3', 'script')
    """
    return SCRIPT if rank is None else str(int(rank))


def rank_of_name(name: str) -> int | None:
    """The way back. Raises ValueError for another name."""
    return None if name == SCRIPT else int(name)


class _BaseDirectory(NamedTuple):
    base: str
    """The base directory: `/opt/ml` in a container, a folder of the job's for a process."""


class _Below:
    """A file or folder, by the names that lead to it from the base directory."""

    def __init__(self, *names: str) -> None:
        self._path = os.path.join(*names)

    def __get__(self, layout: _BaseDirectory, owner: type) -> str:
        return os.path.join(layout.base, self._path)


class Layout(_BaseDirectory):
    """The folders and files below one host's base directory."""

    __slots__ = ()

    @classmethod
    def from_environment(cls) -> Layout:
        """The layout that `SAGEMAKER_BASE_DIR` names, else the one at `/opt/ml`."""
        return cls(os.environ.get(BASE_DIR_VARIABLE) or DEFAULT_BASE_DIR)

    input = _Below("input")
    """What the platform brings: configuration and data."""
    config = _Below("input", "config")
    """The folder of the configuration files."""
    data = _Below("input", "data")
    """The folder of the channels, each in a folder or FIFOs of its name."""
    hyperparameters = _Below("input", "config", "hyperparameters.json")
    """The file with the hyperparameters, each a string that holds JSON."""
    resource_config = _Below("input", "config", "resourceconfig.json")
    """The file with the hosts of the job and the name of this one."""
    input_data_config = _Below("input", "config", "inputdataconfig.json")
    """The file with the channels and how they arrive."""
    checkpoint_config = _Below("input", "config", "checkpointconfig.json")
    """The file with the place of the checkpoints, if the job keeps any."""
    world_secret = _Below("input", "config", "worldsecret")
    """Ours: the secret that the hosts of one job share. Removed as soon as it is read."""
    channeled_secret = _Below("input", "data", WORLD_CHANNEL, WORLD_SECRET_FILE)
    """Ours: the same where the platform can bring nothing but channels. Removed as soon as it is read."""
    channeled_code = _Below("input", "data", CODE_CHANNEL)
    """Ours: a folder with the code bundle, where the platform brings it as a channel."""
    environment = _Below("input", "config", "environment.json")
    """Ours: variables for the script that no description of the host should show. Removed as it is read."""
    pip_settings = _Below("input", "config", "pip.json")
    """Ours: where pip finds packages, and by which way, as on the user's machine. Removed as it is read."""
    package_folders = _Below("input", "pip")
    """Ours: the folder below which those of the user's machine are mounted in which pip finds packages."""
    platform = _Below("input", "config", "platform")
    """Ours: a socket at which a platform hears of an attempt that failed, and says whether another follows on the
    same hosts. Removed as soon as the host is there."""
    stop_request = _Below("input", "config", "stop")
    """Ours: a file that says, beside SIGTERM, that the host is to stop: PID 1 loses a signal for which it has no
    handler yet (`kill(2)`, Notes)."""
    timeline_request = _Below("input", "config", "timeline")
    """Ours: a file that asks for a window of the timeline in detail, which the host removes; see `host.windows`."""
    code = _Below("code")
    """The code folder, in which the script runs."""
    model = _Below("model")
    """What the script leaves here becomes `model.tar.gz`."""
    checkpoints = _Below("checkpoints")
    """What the script leaves here is kept while the job runs, if the job keeps checkpoints."""
    output = _Below("output")
    """What the host leaves besides the model."""
    output_data = _Below("output", "data")
    """What the script leaves here becomes `output.tar.gz`."""
    output_intermediate = _Below("output", "intermediate")
    """What the script leaves here is uploaded while the job runs."""
    failure = _Below("output", "failure")
    """The file that says why the job failed; the platform shows its first 1,024 characters."""
    success = _Below("output", "success")
    """The empty file of a host whose script succeeded."""
    verdict = _Below("output", "verdict.json")
    """Ours: why the job ended, as JSON; `failure` is the same for people."""
    frames = _Below("output", "logs", "frames")
    """Ours: all that the ranks of this host wrote, framed, and the host's events."""
    telemetry = _Below("output", "logs", "telemetry")
    """Ours: a folder of what this host measures of itself and its ranks; see `telemetry.history`."""
    logged_metrics = _Below("output", "logs", "metrics")
    """Ours: a folder of the values that scripts log, a file for each rank; see `telemetry.logged`."""
    timelines = _Below("output", "logs", "timelines")
    """Ours: a folder of what the ranks of this host recorded in such windows; see `training.window`."""
    clocks = _Below("output", "logs", "timelines", "clocks.json")
    """Ours: how far the clocks of the other hosts are from that of the first one; see `mesh.clocks`."""
    alive = _Below("output", "alive")
    """Ours: a folder of files that are open as long as the ranks of this host live; see `ranks_alive`."""
    temporary_folders = _Below("output", "temporary-folders")
    """Ours: a file that names what this host has on its machine outside of these folders, a line each, where its
    platform is on another."""
    training_steps = _Below("output", "training-steps")
    """Ours: a file that names the folder in which the ranks of this host count their training steps."""
    reserve = _Below("output", "logs", "reserve")
    """Ours: room for `verdict` and `failure` on a disk that the job fills up."""

    def written_by_the_job(self) -> tuple[str, ...]:
        """Folders that must exist before the script starts."""
        return (
            self.code,
            self.data,
            self.model,
            self.checkpoints,
            self.output_data,
            self.output_intermediate,
            os.path.dirname(self.frames),
        )
