"""Each wrong input gives one sentence with the file and the line, and starts nothing."""

import pytest

from estimator_sdk import InvalidArgument, job_files

RISEML = """project: digits
train:
  framework: tensorflow
  tensorflow:
    version: 2.21
    horovod:
      workers: 2
  resources:
    gpus: 0
  run:
    - python train.py
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    yield tmp_path / "home"
    assert not list((tmp_path / "home").glob("jobs/*"))


@pytest.fixture
def refused(tmp_path):
    """What is said of a file, without its path: the line and the sentence."""

    def said(text, **options):
        path = tmp_path / "job.yaml"
        path.write_text(text)
        (tmp_path / "train.py").touch()
        with pytest.raises(InvalidArgument) as raised:
            job_files.read(path, **options).plan()
        message = str(raised.value)
        assert message.startswith(f"{path}:") and "\n" not in message
        line, _, sentence = message.removeprefix(f"{path}:").partition(": ")
        return int(line), sentence

    return said


OUR_FORM = {
    "an unknown key": ("entry_point: train.py\ninstnce_count: 2", 2, "'instnce_count' is not known; did you mean"),
    "an unknown key inside": ("source_dir: .\nsteps:\n- a\n- {nam: x, run: b}", 4, "'nam' is not known in steps[1]"),
    "a key twice": ("entry_point: a\nmax_run: 5\nentry_point: b", 3, "'entry_point' is already in line 1"),
    "a key twice inside": ("hyperparameters:\n  lr: 1\n  lr: 2", 3, "'lr' is already in line 2"),
    "an unknown option of Slurm": (
        "entry_point: a\nslurm:\n  partitoin: gpu",
        3,
        "'partitoin' is not known in slurm; did you mean 'partition'?",
    ),
    "a number for an option of Slurm": ("entry_point: a\nslurm: {account: 7}", 2, "must be a string, not 7; put it in"),
    "an option that breaks its line": (
        "entry_point: train.py\ninstance_type: slurm\nslurm:\n  account: a$b",
        4,
        "slurm['account'] is 'a$b', which holds nothing, or a character that no line",
    ),
    "a number in quotes": (
        "entry_point: a\ninstance_count: '2'",
        2,
        "must be a whole number, not the string '2'; remove",
    ),
    "half a number": ("entry_point: a\nmax_run: 1.5", 2, "must be a whole number, not 1.5"),
    "a number for a string": ("source_dir: .\nsteps:\n- 5", 3, "steps[0] must be a string or a mapping of name, run"),
    "yes for true": (
        "entry_point: a\nuse_spot_instances: yes",
        2,
        "must be true or false, not the string 'yes'; write",
    ),
    "a list for a mapping": ("entry_point: a\nhyperparameters: [1]", 2, "must be a mapping, not a list"),
    "no value": ("entry_point:", 1, "has no value, but must be a string"),
    "none of the choices": ("entry_point: a\ninput_mode: Fil", 2, "did you mean 'File'?"),
    "too small a number": ("entry_point: a\ninstance_count: 0", 2, "must be at least 1, not 0; raise it"),
    "too large a number": ("entry_point: a\nmax_retry_attempts: 31", 2, "must be at most 30, not 31; lower it"),
    "no steps": ("source_dir: .\nsteps: []", 2, "steps is empty, so there is nothing to run"),
    "an empty line": ("source_dir: .\nsteps:\n  - ''", 3, "steps[0] is empty"),
    "a blank line": ("source_dir: .\nsteps:\n  - ' '", 3, "is empty or holds a NUL"),
    "a step without a line": ("source_dir: .\nsteps:\n  - name: a", 3, "steps[0] has no `run`"),
    "a name twice": (
        "source_dir: .\nsteps:\n- {name: a, run: b}\n- name: a\n  run: c",
        4,
        "the same name 'a' as an earlier",
    ),
    "steps without a folder": ("\nsteps: [a]", 2, "steps has no effect without source_dir"),
    "two things to run": ("source_dir: .\nentry_point: a\nsteps: [b]", 3, "replaces entry_point"),
    "a version without a framework": ("entry_point: a\nframework_version: '2'", 2, "has no effect without framework"),
    "a version without an image": (
        "entry_point: a\nframework: tensorflow\nframework_version: '1.5'",
        3,
        "framework_version '1.5' of tensorflow has no image",
    ),
    "data that is not there": (
        "entry_point: a\ninputs:\n  train: nowhere",
        3,
        "inputs.train is 'nowhere', but there is no",
    ),
    "data of an unknown kind": (
        "entry_point: a\ninputs:\n  train:\n    s3_data: s3://a/b\n    distribution: Sharded",
        5,
        "inputs.train.distribution must be 'FullyReplicated' or 'ShardedByS3Key'",
    ),
    "what only the estimator knows": (
        "entry_point: a\n\ninstance_type: ml.x",
        3,
        "is not a known instance type",
    ),
    "a reserved name": ("entry_point: a\nhyperparameters:\n  sagemaker_a: 1", 3, "is reserved for the toolkit"),
    "a file that is not there": ("instance_count: 2\nentry_point: tain.py", 2, "did you mean 'train.py'"),
    "an unknown backend": ("entry_point: train.py\nbackend: dokcer", 2, "did you mean 'docker'"),
    "nothing": ("", 1, "the file is empty"),
    "a list": ("\n- a", 2, "a job file must be a mapping"),
    "no YAML": ("a: 1\nb: [1", 2, "this is not valid YAML"),
    "a tab": ("a:\n\tb: 1", 2, "this is not valid YAML"),
    "a control character": ("a: \x01", 1, "this is not valid YAML"),
    "two documents": ("a: 1\n---\nb: 2", 2, "this is not valid YAML"),
    "an unknown alias": ("a: 1\nb: *c", 2, "undefined alias"),
    "an alias in itself": ("entry_point: a\ndependencies: &a [*a]", 2, "an alias is inside its own anchor"),
    "a tag": ("entry_point: !file a", 1, "the tag '!file' has no meaning"),
    "a number by tag alone": ("entry_point: a\nmax_run: !!int many", 2, "'many' is not a number"),
    "a key that is no string": ("entry_point: a\n1: b", 2, "the key '1' is not a string"),
    "a key that is a list": ("? [a]\n: b", 1, "this key is not a string"),
}


@pytest.mark.parametrize(("text", "line", "words"), OUR_FORM.values(), ids=OUR_FORM)
def test_our_form(refused, text, line, words):
    said = refused(text)
    assert (said[0], words in said[1]) == (line, True), said


RISEML_FORM = {
    "an unsupported version": (
        "version: 2.21",
        "version: 1.5.0",
        5,
        "train.tensorflow.version '1.5.0' of tensorflow has",
    ),
    "a version as it is written": ("version: 2.21", "version: 2.10", 5, "'2.10'"),
    "an unsupported framework": (
        "framework: tensorflow",
        "framework: caffe",
        3,
        "train.framework must be 'tensorflow'",
    ),
    "workers in quotes": ("workers: 2", "workers: '2'", 7, "must be a whole number or a mapping of count, processes"),
    "no workers": ("workers: 2", "workers: 0", 7, "must be at least 1"),
    "workers that are true": ("workers: 2", "workers: true", 7, "must be a whole number or a mapping"),
    "workers without a count": ("workers: 2", "workers: {processes: 2}", 7, "has no `count`"),
    "an unknown key of workers": ("workers: 2", "workers: {count: 2, procs: 1}", 7, "did you mean 'processes'?"),
    "processes in quotes": (
        "workers: 2",
        "workers:\n        count: 2\n        processes: '2'",
        9,
        "remove the quotes",
    ),
    "a misspelt key": ("gpus: 0", "gpu: 0", 9, "the key 'gpu' is not known in train.resources; did you mean 'gpus'?"),
    "gpus in quotes": ("gpus: 0", "gpus: '0'", 9, "train.resources.gpus must be a whole number, not the string '0'"),
    "no memory": ("gpus: 0", "mem: 0", 9, "train.resources.mem must be at least 32, not 0"),
    "an empty run list": ("run:\n    - python train.py", "run: []", 10, "train.run is empty"),
    "a line that is none": ("- python train.py", "- {a: b}", 11, "train.run[0] must be a string, not a mapping"),
    "nothing to run": ("  run:\n    - python train.py\n", "", 2, "train has no `run`"),
    "no project": ("project: digits\n", "", 1, "the job file has no `project`"),
    "a key of RiseML's that is not here": (
        "  run:",
        "  install: [pip install Pillow]\n  run:",
        10,
        "train.install is not",
    ),
}


@pytest.mark.parametrize(("old", "new", "line", "words"), RISEML_FORM.values(), ids=RISEML_FORM)
def test_the_form_of_a_riseml_yml(refused, old, new, line, words):
    assert old in RISEML
    said = refused(RISEML.replace(old, new))
    assert (said[0], words in said[1]) == (line, True), said


def test_an_unknown_step_to_begin_with(refused):
    line, sentence = refused("source_dir: .\nsteps:\n- {name: prepare, run: a}\n- b", from_step="prepar")
    assert line == 2
    assert sentence == "from_step 'prepar' is not a step of this job; did you mean 'prepare'? Known: 2, prepare."
    assert refused("entry_point: train.py", from_step="a")[1].startswith("from_step 'a' is not a step of this job")


def test_a_file_that_cannot_be_read(tmp_path):
    for path, words in ((tmp_path / "nowhere.yaml", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InvalidArgument, match=words):
            job_files.read(path)
    (tmp_path / "latin.yaml").write_bytes("project: grün".encode("latin-1"))
    with pytest.raises(InvalidArgument, match=r"latin.yaml:1: the byte 11 is not UTF-8"):
        job_files.read(tmp_path / "latin.yaml")
