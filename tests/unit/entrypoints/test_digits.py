"""The digits examples: their data, their checkpoints, and a real run of the NumPy script."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import checkpoints
import digits
import digits_network
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

SCRIPT = Path(__file__).parents[3] / "entrypoints" / "digits_numpy_mpi.py"


def shares(count, size, batch_size, epoch=0, seed=0):
    return [
        digits.batches(count, rank=rank, size=size, batch_size=batch_size, seed=seed, epoch=epoch)
        for rank in range(size)
    ]


@given(size=st.integers(1, 40), extra=st.integers(0, 500), batch_size=st.integers(1, 200))
def test_every_rank_has_as_many_batches_and_together_they_have_every_example_once(size, extra, batch_size):
    count = size + extra
    by_rank = shares(count, size, batch_size)
    assert len({len(batches) for batches in by_rank}) == 1
    assert all(len(batch) > 0 for batches in by_rank for batch in batches)
    assert sorted(np.concatenate([batch for batches in by_rank for batch in batches])) == list(range(count))


def test_the_order_is_new_in_each_epoch_and_the_same_in_each_run():
    first, again, second = (np.concatenate(shares(100, 1, 8, epoch)[0]) for epoch in (0, 0, 1))
    assert first.tolist() == again.tolist()
    assert first.tolist() != second.tolist()


def test_fewer_examples_than_ranks_are_refused():
    with pytest.raises(ValueError, match="3 examples do not go round 4 ranks"):
        shares(3, 4, 1)


def test_the_test_set_is_a_fifth_and_never_trained_on():
    from sklearn.datasets import load_digits

    data, test = digits.load(None)
    assert (len(data), len(test)) == (1438, 359)
    assert data.images.min() == 0 and data.images.max() == 1
    together = np.concatenate([data.images, test.images]) * 16
    original = load_digits().data
    assert np.array_equal(np.sort(together.view("V256"), axis=0), np.sort(np.float32(original).view("V256"), axis=0))


def save_digits(folder):
    """A channel with scikit-learn's digits."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    np.savez(folder / "digits.npz", images=bunch.images, labels=bunch.target)


def test_a_channel_with_the_same_digits_gives_the_same_examples(tmp_path):
    save_digits(tmp_path)
    for own, other in zip(digits.load(None), digits.load(str(tmp_path)), strict=True):
        assert np.array_equal(own.images, other.images)
        assert np.array_equal(own.labels, other.labels)


def test_a_channel_without_the_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "digits.npz"))):
        digits.load(str(tmp_path))


def test_the_gradient_is_the_slope_of_the_loss():
    data, _ = digits.load(None)
    few = digits.Examples(data.images[:20].astype(np.float64), data.labels[:20])
    parameters = digits_network.initial_parameters(seed=1).astype(np.float64)
    _, _, gradient = digits_network.loss_and_gradient(parameters, few)
    random = np.random.default_rng(0)
    for _ in range(10):
        direction = random.normal(size=parameters.shape)
        direction *= 1e-6 / np.linalg.norm(direction)
        rise = (
            digits_network.loss_and_gradient(parameters + direction, few)[0]
            - digits_network.loss_and_gradient(parameters - direction, few)[0]
        )
        assert rise / 2 == pytest.approx(gradient @ direction, rel=1e-3, abs=1e-12)


def test_the_newest_checkpoint_is_that_of_the_highest_epoch(tmp_path):
    assert checkpoints.newest(tmp_path / "none", ".npz") is None
    for epoch in (2, 10, 9):
        checkpoints.path_of(tmp_path, epoch, ".npz").touch()
    (tmp_path / ".unfinished-epoch-0011.npz").touch()
    (tmp_path / "epoch-0012.keras").touch()
    assert checkpoints.newest(tmp_path, ".npz") == (10, tmp_path / "epoch-0010.npz")


def test_a_checkpoint_that_failed_leaves_nothing_and_keeps_the_old_one(tmp_path):
    path = tmp_path / "epoch-0001.npz"
    path.write_text("old")
    with pytest.raises(RuntimeError), checkpoints.written_whole(path) as unfinished:
        unfinished.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def run(folder, *options, ranks=None):
    environment = {
        **os.environ,
        "SM_MODEL_DIR": str(folder / "model"),
        "SM_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    command = [sys.executable, str(SCRIPT), *options]
    if ranks is not None:
        mpirun = shutil.which("mpirun", path=f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}")
        # A rank that waits in MPI leaves its CPU to others; and one whose MPI_Finalize this mpirun could not answer
        # within two seconds, as on a machine whose disk is busy, has not failed.
        patient = ["-mca", "mpi_yield_when_idle", "1", "-mca", "orte_allowed_exit_without_sync", "1"]
        command = [mpirun, "-np", str(ranks), "--oversubscribe", *patient, *command]
    ended = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def accuracy(printed):
    return float(re.search(r"^test_accuracy: (0\.\d{4})$", printed, re.MULTILINE)[1])


@pytest.mark.parametrize("ranks", [None, 2])
def test_the_numpy_script_learns_the_digits_and_writes_its_model(tmp_path, ranks):
    save_digits(tmp_path)
    printed = run(tmp_path, *(["--train", str(tmp_path)] if ranks else []), ranks=ranks)
    assert accuracy(printed) > 0.95
    assert f"weights agree on all {ranks or 1} ranks" in printed
    assert len(re.findall(r"^epoch \d+/12 loss \S+ acc \S+ val_loss \S+ val_acc \S+$", printed, re.M)) == 12
    with np.load(tmp_path / "model" / "model.npz") as model:
        assert {name: model[name].shape for name in model.files} == digits_network.SHAPES
    assert len(list((tmp_path / "checkpoints").iterdir())) == 12


def test_a_resumed_run_goes_on_after_the_last_epoch_and_ends_as_an_uninterrupted_one(tmp_path):
    save_digits(tmp_path)
    channel = ["--train", str(tmp_path)]  # which spares each process the import of scikit-learn
    whole = run(tmp_path / "whole", "--epochs", "4", *channel)
    run(tmp_path / "parts", "--epochs", "2", *channel)
    resumed = run(tmp_path / "parts", "--epochs", "4", *channel)
    assert "resuming after epoch 2" in resumed
    assert re.findall(r"^epoch (\d)/4", resumed, re.MULTILINE) == ["3", "4"]
    assert resumed.splitlines()[-4:] == whole.splitlines()[-4:]
