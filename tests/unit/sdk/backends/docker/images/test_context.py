"""What an image is built from."""

from __future__ import annotations

import os

import pytest

from estimator_sdk.backends.docker.images import catalogue, context


def test_who_runs_in_the_image_can_read_what_is_copied_there_whatever_the_umask_is_here(tmp_path, monkeypatch):
    certificates = tmp_path / "private.pem"
    certificates.touch(0o600)
    monkeypatch.setenv("PIP_CERT", str(certificates))
    before = os.umask(0o077)
    try:
        context.write(catalogue.MPI, context.files(catalogue.MPI), tmp_path / "context")
    finally:
        os.umask(before)
    made = list((tmp_path / "context").rglob("*"))
    assert {"bundle.pem", "host.py", "install"} <= {path.name for path in made}
    for path in made:
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path


@pytest.mark.parametrize("for_gpus", [False, True])
def test_a_build_without_cuda_that_lies_here_goes_into_images_without_gpus_alone(tmp_path, monkeypatch, for_gpus):
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (tmp_path / "context").mkdir()
    context.write(catalogue.newest("pytorch", for_gpus), {}, tmp_path / "context")
    assert len(list((tmp_path / "context" / "wheels").iterdir())) == (0 if for_gpus else 1)


def test_a_horovod_that_was_compiled_here_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(context.platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    frameworks = {
        "tensorflow-2.21.0-torch-none-mpi-pip": {"tensorflow"},  # the same with CUDA and without
        "tensorflow-none-torch-2.13.0+cpu-mpi-pip": {"pytorch"},
        "tensorflow-none-torch-2.13.0-mpi-pip-nccl-cuda-13.0": {"pytorch"},
        "tensorflow-2.21.0-torch-2.13.0+cpu-mpi-pip": set(),
        "tensorflow-none-torch-2.13.0-mpi-system": set(),
    }
    for name in frameworks:
        folder = tmp_path / "estimator-sdk" / "wheels" / f"horovod-0.28.1-cp311-linux_x86_64-{name}"
        folder.mkdir(parents=True)
        (folder / "horovod-0.28.1-cp311-cp311-linux_x86_64.whl").touch()
    for number, image in enumerate(catalogue.newest(kind, gpus) for kind in catalogue.VERSIONS for gpus in (0, 1)):
        (tmp_path / str(number)).mkdir()
        context.write(image, {}, tmp_path / str(number))
        copied = {path.name for path in (tmp_path / str(number) / "horovod-wheels").iterdir()}
        wanted = {
            f"horovod-0.28.1-cp311-linux_x86_64-{name}" for name, of in frameworks.items() if image.framework in of
        }
        assert copied == wanted, image.name
