import pytest

from estimator_sdk import Estimator, TensorFlow
from estimator_sdk.backends.slurm.batch import images, packages
from estimator_sdk.errors import InvalidArgument


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Plans a job with an image, by what the options name."""
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "train.py").write_text("print(1)")

    def planned(image, options, inputs=None, **arguments):
        given = {"instance_type": "slurm", "slurm": options, "image_uri": image, **arguments}
        return Estimator(entry_point=str(tmp_path / "train.py"), **given).plan(inputs, job_name="digits")

    return planned


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("nvcr.io/nvidia/pytorch:26.01-py3", "nvcr.io#nvidia/pytorch:26.01-py3"),
        ("localhost:5000/mine", "localhost:5000#mine"),
        ("ubuntu:24.04", "ubuntu:24.04"),
        ("ada/image", "ada/image"),
        ("/shared/images/x.sqsh", "/shared/images/x.sqsh"),
    ],
)
def test_pyxis_is_told_by_options_of_srun(plan, tmp_path, image, named):
    planned = plan(image, {"container_runtime": "pyxis", "container_options": {"container-writable": True}})
    home = f"{tmp_path}/home"
    assert planned.image == image
    assert planned.image_words == (
        f"--container-image={named}",
        f"--container-mounts={home}:{home}",
        "--container-writable",
    )


@pytest.mark.parametrize(
    ("image", "named"),
    [
        ("ubuntu:24.04", "docker://ubuntu:24.04"),
        ("oras://registry.example/x", "oras://registry.example/x"),
        ("/shared/x.sif", "/shared/x.sif"),
    ],
)
def test_apptainer_is_a_program_that_is_given_a_hosts_command(plan, tmp_path, image, named):
    options = {"container_runtime": "apptainer", "container_mounts": ["/nvme:/fast"], "local_scratch": "/scratch"}
    inputs = {"train": f"file://{tmp_path}", "more": "s3://bucket/more"}
    *words, last = plan(image, options, inputs).image_words
    bind = f"--bind={tmp_path}/home,{tmp_path},/scratch,/nvme:/fast"
    assert words[1:] == ["exec", bind] and words[0] in ("apptainer", "singularity") and last == named


@pytest.mark.parametrize(("more", "has_nv"), [({}, True), ({"container_options": {"rocm": True}}, False)])
def test_apptainer_shows_gpus_to_jobs_that_ask_for_them(plan, more, has_nv):
    words = plan("/x.sif", {"container_runtime": "apptainer", "gpus_per_node": 2, **more}).image_words
    assert ("--nv" in words) is has_nv


def test_charliecloud_is_given_folders(plan, tmp_path):
    options = {"container_runtime": "charliecloud", "container_mounts": ["/usr"]}
    words = plan("./image", options).image_words
    home = f"{tmp_path}/home"
    assert words[:3] == ("ch-run", f"--bind={home}:{home}", "--bind=/usr:/usr")
    assert words[3].startswith("--set-env=PATH=") and words[-2].startswith("/") and words[-1] == "--"


def test_a_host_in_an_image_runs_a_copy_of_the_toolkit_by_the_images_python(plan):
    planned = plan("/x.sif", {"container_runtime": "apptainer"})
    toolkit = f"{packages.copy()}/estimator_container"
    assert planned.hosts[0].argv == ("python3", "-I", "-S", toolkit, "train")
    assert planned.command[0] == "python3" and packages.travel_with(planned)
    assert "image         /x.sif\n" in str(planned) and " exec --bind=" in str(planned)


def test_it_is_what_this_machine_has_unless_a_job_says_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert images.found() is None
    (tmp_path / "singularity").touch(0o755)
    assert images.found() == "apptainer"
    (tmp_path / "srun").write_text("#!/bin/sh\necho ' --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH'\n")
    (tmp_path / "srun").chmod(0o755)
    assert images.found() == "pyxis"


@pytest.mark.parametrize(
    ("image", "options", "words"),
    [
        ("x", {}, "neither Pyxis .* nor Apptainer nor Charliecloud.*; say which one nodes have"),
        (None, {"container_mounts": ["/data"]}, "is for jobs with an image; give image_uri"),
        ("estimator/mpi:py311", {"container_runtime": "pyxis"}, "which Docker has on this machine, and no node can"),
    ],
)
def test_an_image_that_no_node_can_run_is_refused(plan, monkeypatch, tmp_path, image, options, words):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InvalidArgument, match=words):
        plan(image, options)


def test_a_variable_of_nodes_is_no_folder_that_an_image_can_be_shown(plan):
    options = {"container_runtime": "apptainer", "local_scratch": "SLURM_TMPDIR"}
    with pytest.raises(InvalidArgument, match="name the folder"):
        plan("/x.sif", options, {"train": "s3://bucket/train"})


def test_a_version_of_a_framework_is_not_looked_for_beside_an_image(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    (tmp_path / "train.py").write_text("print(1)")
    given = {"instance_type": "slurm", "image_uri": "/x.sif", "slurm": {"container_runtime": "apptainer"}}
    asked = TensorFlow(entry_point=str(tmp_path / "train.py"), framework_version="2.99", **given)
    assert asked.plan().image == "/x.sif"
