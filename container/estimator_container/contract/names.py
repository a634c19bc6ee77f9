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
WORLD_TIMEOUT = "ESTIMATOR_WORLD_TIMEOUT"  # seconds to wait for the other hosts
RESTARTS = "ESTIMATOR_RESTARTS"  # how many attempts of the job came before the one that this host begins with
MAX_RESTARTS = "ESTIMATOR_MAX_RESTARTS"  # how many may follow the first
HANG_FLOOR = "ESTIMATOR_HANG_FLOOR"  # the least number of seconds of silence that is learnt to be one of a hang
STOP_TIMEOUT = "ESTIMATOR_STOP_TIMEOUT"  # seconds between SIGTERM and SIGKILL
HOROVOD_KERAS3 = "ESTIMATOR_HOROVOD_KERAS3"  # "off": Horovod's names stay as they are on Keras 3; for the script
DRIFT_GUARD = "ESTIMATOR_DRIFT_GUARD"  # "off", or "warn", which ends no job for ranks that differ; for the script
CONSOLE = "ESTIMATOR_CONSOLE"  # "off": somebody reads the frames, so nothing is shown on standard output
OVERLAY_DIR = "ESTIMATOR_OVERLAY_DIR"  # where requirements are installed instead of the interpreter's own
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
        WORLD_TIMEOUT,
        RESTARTS,
        MAX_RESTARTS,
        HANG_FLOOR,
        STOP_TIMEOUT,
        CONSOLE,
        OVERLAY_DIR,
    }
)

DEFAULT_WORLD_TIMEOUT = 300.0  # ours; as long as `torch.distributed.TCPStore` waits for others unless it is told
DEFAULT_STOP_TIMEOUT = 120.0  # what SageMaker grants, "Stop a Training Job" in its API reference
DEFAULT_HANG_TIMEOUT = 1800.0  # ours; the default `timeout` of `torch.distributed.init_process_group` on Gloo
DEFAULT_HANG_FLOOR = 30.0  # ours; shorter silences are as likely those of a busy machine
STEPS_PREFIX = "steps-"  # of the names of the files in which ranks count their training steps
WORLD_PORT = 7776  # where a first host listens for the others when it inherited no socket


class Layout(NamedTuple):
    """The folders and files below one host's base directory."""

    base: str
    """The base directory: `/opt/ml` in a container, a folder of the job's for a process."""

    @classmethod
    def from_environment(cls) -> Layout:
        """The layout that `SAGEMAKER_BASE_DIR` names, else the one at `/opt/ml`."""
        return cls(os.environ.get(BASE_DIR_VARIABLE) or DEFAULT_BASE_DIR)

    def _at(self, *names: str) -> str:
        return os.path.join(self.base, *names)

    @property
    def input(self) -> str:
        """What the platform brings: configuration and data."""
        return self._at("input")

    @property
    def config(self) -> str:
        """The folder of the configuration files."""
        return self._at("input", "config")

    @property
    def data(self) -> str:
        """The folder of the channels, each in a folder or FIFOs of its name."""
        return self._at("input", "data")

    @property
    def hyperparameters(self) -> str:
        """The file with the hyperparameters, each a string that holds JSON."""
        return self._at("input", "config", "hyperparameters.json")

    @property
    def resource_config(self) -> str:
        """The file with the hosts of the job and the name of this one."""
        return self._at("input", "config", "resourceconfig.json")

    @property
    def input_data_config(self) -> str:
        """The file with the channels and how they arrive."""
        return self._at("input", "config", "inputdataconfig.json")

    @property
    def checkpoint_config(self) -> str:
        """The file with the place of the checkpoints, if the job keeps any."""
        return self._at("input", "config", "checkpointconfig.json")

    @property
    def world_secret(self) -> str:
        """Ours: the secret that the hosts of one job share. Removed as soon as it is read."""
        return self._at("input", "config", "worldsecret")

    @property
    def channeled_secret(self) -> str:
        """Ours: the same where the platform can bring nothing but channels. Removed as soon as it is read."""
        return self._at("input", "data", WORLD_CHANNEL, WORLD_SECRET_FILE)

    @property
    def channeled_code(self) -> str:
        """Ours: a folder with the code bundle, where the platform brings it as a channel."""
        return self._at("input", "data", CODE_CHANNEL)

    @property
    def environment(self) -> str:
        """Ours: variables for the script that no description of the host should show. Removed as it is read."""
        return self._at("input", "config", "environment.json")

    @property
    def pip_settings(self) -> str:
        """Ours: where pip finds packages, and by which way, as on the user's machine. Removed as it is read."""
        return self._at("input", "config", "pip.json")

    @property
    def package_folders(self) -> str:
        """Ours: the folder below which those of the user's machine are mounted in which pip finds packages."""
        return self._at("input", "pip")

    @property
    def platform(self) -> str:
        """Ours: a socket at which a platform hears of an attempt that failed, and says whether another follows on the
        same hosts. Removed as soon as the host is there."""
        return self._at("input", "config", "platform")

    @property
    def stop_request(self) -> str:
        """Ours: a file that says, beside SIGTERM, that the host is to stop: PID 1 loses a signal for which it has no
        handler yet (`kill(2)`, Notes)."""
        return self._at("input", "config", "stop")

    @property
    def code(self) -> str:
        """The code folder, in which the script runs."""
        return self._at("code")

    @property
    def model(self) -> str:
        """What the script leaves here becomes `model.tar.gz`."""
        return self._at("model")

    @property
    def checkpoints(self) -> str:
        """What the script leaves here is kept while the job runs, if the job keeps checkpoints."""
        return self._at("checkpoints")

    @property
    def output(self) -> str:
        """What the host leaves besides the model."""
        return self._at("output")

    @property
    def output_data(self) -> str:
        """What the script leaves here becomes `output.tar.gz`."""
        return self._at("output", "data")

    @property
    def output_intermediate(self) -> str:
        """What the script leaves here is uploaded while the job runs."""
        return self._at("output", "intermediate")

    @property
    def failure(self) -> str:
        """The file that says why the job failed; the platform shows its first 1,024 characters."""
        return self._at("output", "failure")

    @property
    def success(self) -> str:
        """The empty file of a host whose script succeeded."""
        return self._at("output", "success")

    @property
    def verdict(self) -> str:
        """Ours: why the job ended, as JSON; `failure` is the same for people."""
        return self._at("output", "verdict.json")

    @property
    def frames(self) -> str:
        """Ours: all that the ranks of this host wrote, framed, and the host's events."""
        return self._at("output", "logs", "frames")

    @property
    def alive(self) -> str:
        """Ours: a folder of files that are open as long as the ranks of this host live; see `ranks_alive`."""
        return self._at("output", "alive")

    @property
    def training_steps(self) -> str:
        """Ours: a file that names the folder in which the ranks of this host count their training steps."""
        return self._at("output", "training-steps")

    @property
    def reserve(self) -> str:
        """Ours: room for `verdict` and `failure` on a disk that the job fills up."""
        return self._at("output", "logs", "reserve")

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
