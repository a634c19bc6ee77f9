"""W, A and E once more, for the distributions whose ranks the toolkit starts itself."""

from __future__ import annotations

import json
import os
import time

import numpy as np
import pytest

from estimator_sdk import InvalidArgument, Job, JobFailed
from tests.conformance.jobs import MEET, kill_host, left_of, less_of_scheduler, wait_until_up
from tests.waiting import SECONDS

TORCH = {"torch_distributed": {"enabled": True, "processes_per_host": 2}}
MIRRORED = {"multi_worker_mirrored_strategy": {"enabled": True}}
FAIL_BOUND = 2.0  # seconds from a rank's failure to the end of the job on all hosts


@pytest.mark.law("W1", "W3", "A1", "A3")
@pytest.mark.parametrize(
    ("hosts", "distribution", "processes"), [(2, TORCH, 2), (3, MIRRORED, 1), (1, TORCH, 2), (1, MIRRORED, 1)]
)
def test_the_world_is_right(script, out, hosts, distribution, processes):
    source = f"{MEET}\nprint(json.dumps([dict(os.environ), sys.argv[1:]]))"
    text = "it's $(id)\n馬"
    job = script.run(source, hosts=hosts, distribution=distribution, hyperparameters={"text": text})
    for rank in range(hosts * processes):
        env, argv = json.loads(out(job, rank=rank))
        assert argv == ["--text", text]
        assert (env["SM_CURRENT_HOST"], env["LOCAL_RANK"]) == (
            f"algo-{rank // processes + 1}",
            str(rank % processes),
        )
        assert (env["WORLD_SIZE"], env["LOCAL_WORLD_SIZE"]) == (str(hosts * processes), str(processes))
        added = less_of_scheduler(set(env) - set(os.environ), job.backend)
        assert [name for name in added if not name.startswith(RESERVED) and name not in ALSO_RESERVED] == []
    assert job.metrics() == [] and left_of(job) == []


RESERVED = ("SM_", "SAGEMAKER_", "TRAINING_JOB_", "TORCHELASTIC_", "GROUP_", "ROLE_", "MASTER_")
ALSO_RESERVED = {
    *("CURRENT_HOST", "PYTHONPATH", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TF_CONFIG"),
    *("OMP_NUM_THREADS", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"),
    "no_grpc_proxy",
    *("OPAL_PREFIX", "OMPI_MCA_orte_tmpdir_base", "OMPI_MCA_btl_vader_backing_directory"),  # for scripts with MPI
    *("HOSTNAME", "LC_CTYPE"),  # Docker's; Python's own
}


@pytest.mark.law("W3")
def test_what_the_user_sets_counts_where_torchrun_lets_it(script, out):
    mine = {"OMP_NUM_THREADS": "3", "GLOO_SOCKET_IFNAME": "mine", "RANK": "7", "MASTER_PORT": "1"}
    source = f"import os; print(*(os.environ[name] for name in {list(mine)}))"
    job = script.run(source, distribution=TORCH, environment=mine)
    threads, interface, rank, port = out(job, rank=1).split()
    assert (threads, interface, rank) == (b"3", b"mine", b"1") and int(port) > 1


@pytest.mark.law("W1")
@pytest.mark.parametrize("distribution", [TORCH, MIRRORED], ids=["torch", "mirrored"])
def test_jobs_at_the_same_time_do_not_meet(script, distribution):
    """Each rank checks the name of the job that it meets."""
    jobs = [script.estimator(MEET, hosts=2, distribution=distribution).fit(wait=False) for _ in range(3)]
    for job in jobs:
        job.wait(SECONDS)
        assert job.status == "Completed", job.why()


@pytest.mark.law("W1")
def test_each_step_is_a_world_at_the_same_place(script, out):
    source = f"{MEET}\nprint(sys.argv[1], places)"
    steps = ["python train.py first", "python train.py second"]
    job = script.estimator(source, entry_point=None, steps=steps, hosts=2, distribution=TORCH).fit(logs="none")
    for rank in range(4):
        first, second = out(job, rank=rank).decode().splitlines()
        assert first.startswith("first [[") and second == first.replace("first", "second", 1)


@pytest.mark.law("W5", "P1")
def test_processes_follow_the_instance_type(script):
    for instance_type, processes in (("ml.g5.12xlarge", 4), ("ml.m5.large", 1)):
        plan = script.estimator(
            "", hosts=2, instance_type=instance_type, distribution={"torch_distributed": {"enabled": True}}
        ).plan()
        assert (plan.distribution, plan.processes_per_host, plan.world_size) == (
            "torch_distributed",
            processes,
            2 * processes,
        )
        plan = script.estimator("", hosts=2, instance_type=instance_type, distribution=MIRRORED).plan()
        assert (plan.distribution, plan.world_size) == ("multi_worker_mirrored_strategy", 2)
    with pytest.raises(InvalidArgument, match="must enable one distribution"):
        script.estimator("", distribution={**TORCH, **MIRRORED})


@pytest.mark.law("E1")
def test_a_host_that_finishes_early_ends_no_other(script, out):
    source = "import os, time; time.sleep(1.5 * (os.environ['RANK'] == '3')); print('finished')"
    job = script.run(source, hosts=2, distribution=TORCH)
    assert job.status == "Completed"
    assert [out(job, rank=rank) for rank in range(4)] == [b"finished\n"] * 4


@pytest.mark.alone
@pytest.mark.law("E2")
@pytest.mark.parametrize(
    ("distribution", "culprit", "how", "expected"),
    [
        (TORCH, 3, "os.kill(os.getpid(), 9)", ("signal", None, "SIGKILL")),
        (TORCH, 0, "raise ValueError('no such digit')", ("exception", 1, None)),
        (MIRRORED, 1, "os._exit(9)", ("exit_code", 9, None)),
    ],
)
def test_the_first_failing_rank_is_named_though_others_fail_for_its_sake(
    script, distribution, culprit, how, expected, stretched
):
    """The others read from a connection to the culprit, whose end takes longer than theirs when it is closed."""
    size = 2 * (2 if distribution is TORCH else 1)
    source = f"""{MEET}
if rank == {culprit}:
    print("failing at", time.time(), flush=True)
    for guest in guests:
        guest.shutdown(socket.SHUT_RDWR)
    time.sleep(0.1)
    {how}
elif {culprit} < len(places):
    links[{culprit}].recv(1)
    raise ConnectionError("Connection closed by peer")
time.sleep(600)
"""
    for _ in range(3):  # a machine that stands still may hold its last word up for longer than that is waited for
        failed = script.fail(source, hosts=2, distribution=distribution)
        ended = time.time()
        if failed.verdict.rank == culprit:
            break
    verdict, host = failed.verdict, f"algo-{culprit * 2 // size + 1}"
    assert (verdict.rank, verdict.host) == (culprit, host)
    assert (verdict.kind, verdict.exit_code, verdict.signal) == expected
    assert f"rank {culprit} on {host}" in str(failed)
    job = Job.attach(failed.job_name)
    said = b"".join(line.data for line in job.logs(rank=culprit, stream="stdout")).split()
    assert ended - float(said[2]) < stretched(FAIL_BOUND)
    assert left_of(job) == []


@pytest.mark.law("E2")
def test_a_connection_that_nobody_else_fails_for_is_the_verdict(script):
    source = "import os\nif os.environ['RANK'] == '1': raise ConnectionResetError('Connection reset by peer')"
    verdict = script.fail(f"{source}\nimport time; time.sleep(600)", hosts=2, distribution=MIRRORED).verdict
    assert (verdict.rank, verdict.kind, verdict.victims) == (1, "exception", (0,))


@pytest.mark.alone
@pytest.mark.law("E2")
def test_a_host_that_is_killed_ends_the_job_by_name(script, stretched):
    source = "import time; print('up', flush=True); time.sleep(600)"
    job = script.estimator(source, hosts=2, distribution=TORCH).fit(wait=False)
    wait_until_up(job, 4)
    kill_host(job, "algo-2")
    killed = time.time()
    with pytest.raises(JobFailed) as failed:
        job.wait(SECONDS)
    assert time.time() - killed < stretched(FAIL_BOUND)
    assert (failed.value.verdict.kind, failed.value.verdict.host) == ("host_lost", "algo-2")
    assert left_of(job) == []


@pytest.mark.law("E2")
def test_a_world_that_stands_still_ends_with_where_each_rank_stands(script):
    source = f"""{MEET}
def wait_for_a_word():
    links[0].recv(1)
wait_for_a_word()
"""
    found = script.fail(source, hosts=2, distribution=TORCH, hang_timeout=6).verdict
    assert (found.kind, found.rank) == ("deadlock", None)
    assert "wait_for_a_word" in found.detail and "ranks 0, 1, 2 and 3" in found.detail


@pytest.mark.law("E4")
def test_a_stop_reaches_every_rank(script, out):
    source = """
import os, signal, sys, time
def save(number, frame):
    os.write(1, b"saved\\n")  # print could be in the middle of a line
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
time.sleep(600)
"""
    job = script.estimator(source, hosts=2, distribution=TORCH).fit(wait=False)
    wait_until_up(job, 4)
    job.stop()
    assert job.wait(SECONDS) == "Stopped"
    assert [out(job, rank=rank) for rank in range(4)] == [b"up\nsaved\n"] * 4
    assert left_of(job) == []


TRAIN = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.modules["sklearn"] = None  # or Keras imports it for its own wrappers
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
tf.keras.utils.set_random_seed(1 + int(os.environ["RANK"]))
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((8,)), tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.05)
    optimizer.build(model.trainable_variables)
start = [weight.tolist() for weight in model.get_weights()]
images = np.random.default_rng(5).normal(size=(64, 8)).astype("float32")
labels = images @ np.arange(8, dtype="float32")[:, None]
data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices((images, labels)).batch(16))

def step(batch):
    x, y = batch
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(tf.square(model(x) - y)[:, 0])
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss, tf.shape(x)[0]

@tf.function
def of_all(batch):
    loss, count = strategy.run(step, args=(batch,))
    return strategy.reduce("SUM", loss, axis=None), count

told = [of_all(batch) for batch in data]
print(json.dumps({
    "replicas": strategy.num_replicas_in_sync,
    "worker": strategy.cluster_resolver.task_id,
    "start": start,
    "losses": [float(loss) for loss, _ in told],
    "counts": [int(count) for _, count in told],
    "end": [weight.tolist() for weight in model.get_weights()],
}))
"""


@pytest.mark.turn("process")
@pytest.mark.law("W2")
def test_tensorflow_trains_one_model_on_two_hosts(script, with_horovod, out):
    """Each worker sees half of every batch; the model is the one that a single process makes of whole batches.

    The proxy, at which nobody answers, stands for one that does not know the hosts.
    """
    proxy = {"http_proxy": "http://127.0.0.1:9"}
    job = script.run(TRAIN, hosts=2, distribution=MIRRORED, environment=proxy, **with_horovod)
    first, second = (json.loads(out(job, rank=rank).splitlines()[-1]) for rank in range(2))
    assert (first.pop("worker"), second.pop("worker")) == (0, 1)
    assert first == second and first["replicas"] == 2 and first["counts"] == [8] * 4
    weights, bias = (np.array(each) for each in first["start"])
    images = np.random.default_rng(5).normal(size=(64, 8)).astype("float32")
    labels = images @ np.arange(8, dtype="float32")[:, None]
    losses = []
    for x, y in zip(images.reshape(4, 16, 8), labels.reshape(4, 16, 1), strict=True):
        error = x @ weights + bias - y
        losses.append(float((error**2).mean()))
        weights, bias = weights - 0.05 * 2 / 16 * x.T @ error, bias - 0.05 * 2 * error.mean(axis=0)
    assert first["losses"] == pytest.approx(losses, rel=1e-4)
    assert np.allclose(first["end"][0], weights, rtol=1e-4) and np.allclose(first["end"][1], bias, rtol=1e-4, atol=1e-5)


SERVED = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
sys.modules["sklearn"] = None  # or Keras imports it for its own wrappers
import numpy as np
import tensorflow as tf

cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if cluster.task_type == "worker":
    tf.distribute.Server(cluster.cluster_spec(), "worker", cluster.task_id, protocol="grpc").join()
chosen = np.random.default_rng(5)
images = chosen.normal(size=(1800, 64)).astype("float32")
labels = np.argmax(images @ chosen.normal(size=(64, 10)), 1)
strategy = tf.distribute.ParameterServerStrategy(cluster)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights, bias = tf.Variable(tf.zeros([64, 10])), tf.Variable(tf.zeros([10]))


def batches():
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(2000, seed=1).repeat().batch(64)


@tf.function
def step(batch):
    x, y = next(batch)
    with tf.GradientTape() as tape:
        scores = x @ weights + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=scores))
    for variable, gradient in zip((weights, bias), tape.gradient(loss, (weights, bias))):
        variable.assign_sub(0.5 * gradient)


each = iter(coordinator.create_per_worker_dataset(batches))
steps = int(os.environ["STEPS"])
for number in range(steps):
    coordinator.schedule(step, args=(each,))
    if number % 100 == 99:
        coordinator.join()
        right = np.argmax(images @ weights.numpy() + bias.numpy(), 1) == labels
        where = sorted({tf.DeviceSpec.from_string(variable.device).job for variable in (weights, bias)})
        print(json.dumps({"accuracy": float(right.mean()), "where": where}), flush=True)
"""
SERVERS = {"parameter_server": {"enabled": True}}


@pytest.mark.turn("docker")
def test_parameter_servers_hold_the_model_that_the_workers_train(script, with_horovod, out):
    """The job ends with the chief, though the workers and the servers would go on for ever."""
    job = script.run(SERVED, hosts=2, distribution=SERVERS, environment={"STEPS": "300"}, **with_horovod)
    told = json.loads(out(job, rank=0).splitlines()[-1])
    assert told["accuracy"] > 0.9 and told["where"] == ["ps"]
    assert left_of(job) == []


def test_steps_have_no_parameter_servers(script):
    with pytest.raises(InvalidArgument, match="parameter_server runs one script, but the job has steps"):
        script.estimator({"a.py": ""}, entry_point=None, steps=["python a.py"], distribution=SERVERS).plan()
