import shlex

import pytest

from estimator_sdk.backends.slurm.options import SlurmOptions
from estimator_sdk.errors import InvalidArgument

ALL = {
    "partition": "gpu,debug",
    "account": "lab",
    "qos": "high",
    "constraint": "ib&a100",
    "gres": "gpu:4",
    "gpus_per_node": 4,
    "reservation": "course",
    "nodelist": "n[1-3]",
    "exclude": "n7",
    "exclusive": True,
    "licenses": "matlab:1",
    "nice": 100,
    "dependency": "afterok:1234",
    "comment": "two words",
    "mail_type": "END,FAIL",
    "mail_user": "ada@example.com",
    "python": "/shared/env/bin/python",
    "modules": ["openmpi/4.1.8", "cuda"],
    "interface": "ib0",
    "transport": "fabric",
    "local_scratch": "SLURM_TMPDIR",
    "container_runtime": "pyxis",
    "container_mounts": ["/datasets", "/nvme:/fast:ro"],
    "container_options": {"container-writable": True},
    "export_script": "job.sh",
    "requeue": False,
    "sbatch_options": {"wckey": "x", "contiguous": True, "begin": "now+1hour", "switches": 1},
}


def test_what_a_document_says_comes_back_from_the_options():
    assert SlurmOptions.from_document(ALL).to_document() == ALL


def test_gpus_are_those_of_a_host_and_no_option_of_sbatch():
    options = SlurmOptions.from_words({"gpus": "4"})
    assert (options.gpus, list(options.lines())) == (4, ["--requeue"])
    with pytest.raises(InvalidArgument, match=r"slurm\['gpus'\] replaces 'gpus_per_node'; give only one of them"):
        SlurmOptions.from_document({"gpus": 1, "gpus_per_node": 2})


def test_what_is_as_by_default_is_not_in_a_document():
    assert SlurmOptions.from_document({"requeue": True, "exclusive": False, "account": None}).to_document() == {}


def test_every_option_is_one_line_under_its_own_name():
    assert list(SlurmOptions.from_document(ALL).lines()) == [
        "--partition=gpu,debug",
        "--account=lab",
        "--qos=high",
        "--constraint=ib&a100",
        "--gres=gpu:4",
        "--gpus-per-node=4",
        "--reservation=course",
        "--nodelist=n[1-3]",
        "--exclude=n7",
        "--exclusive",
        "--licenses=matlab:1",
        "--nice=100",
        "--dependency=afterok:1234",
        '--comment="two words"',
        "--mail-type=END,FAIL",
        "--mail-user=ada@example.com",
        "--no-requeue",
        "--wckey=x",
        "--contiguous",
        "--begin=now+1hour",
        "--switches=1",
    ]


def test_a_job_without_options_may_be_put_back_in_the_queue():
    assert list(SlurmOptions().lines()) == ["--requeue"]


@pytest.mark.parametrize(
    ("given", "argument", "words"),
    [
        ({"partitoin": "x"}, "slurm['partitoin']", r"is not known; did you mean 'partition'.*sbatch_options"),
        ({"wckey": "x"}, "slurm['wckey']", "Others go into 'sbatch_options'"),
        ({"partition": 7}, "slurm['partition']", "must be a string, not 7"),
        ({"partition": ""}, "slurm['partition']", "is '', which holds nothing"),
        ({"account": " lab"}, "slurm['account']", "a space at an end"),
        ({"exclusive": "yes"}, "slurm['exclusive']", "must be True or False, not 'yes'"),
        ({"requeue": 1}, "slurm['requeue']", "must be True or False, not 1"),
        ({"nice": -1}, "slurm['nice']", "a whole number of at least 0, not -1"),
        ({"nice": "5"}, "slurm['nice']", "a whole number of at least 0, not '5'"),
        ({"gpus_per_node": 0}, "slurm['gpus_per_node']", "a whole number of at least 1, not 0"),
        ({"hosts_per_node": 0}, "slurm['hosts_per_node']", "a whole number of at least 1, not 0"),
        ({"gpus_per_node": True}, "slurm['gpus_per_node']", "a whole number of at least 1, not True"),
        ({"gpus_per_node": 1 << 31}, "slurm['gpus_per_node']", "a whole number"),
        ({"gpus_per_node": "a100:2"}, "slurm['gpus_per_node']", "not 'a100:2'; gres takes a type, such as"),
        ({"python": "python3"}, "slurm['python']", "must be an absolute path, such as .*, not 'python3'"),
        ({"transport": "ucx"}, "slurm['transport']", "is 'ucx', but must be one of 'tcp', 'fabric'; leave it out"),
        ({"local_scratch": "tmp/x"}, "slurm['local_scratch']", "must be an absolute path.*or the name of a variable"),
        ({"modules": "cuda"}, "slurm['modules']", r"must be a list such as \['openmpi/4.1.8'\], not 'cuda'"),
        ({"modules": ["cuda", "a b"]}, "slurm['modules'][1]", "must be the name of a module, not 'a b'"),
        ({"modules": ["--force"]}, "slurm['modules'][0]", "must be the name of a module"),
        (
            {"container_runtime": "podman"},
            "slurm['container_runtime']",
            "must be one of 'pyxis', 'apptainer', 'charlie",
        ),
        ({"container_mounts": "/data"}, "slurm['container_mounts']", r"must be a list such as \['/datasets'\]"),
        ({"container_mounts": ["data"]}, "slurm['container_mounts'][0]", "must be an absolute path, or two with"),
        ({"container_mounts": ["/a,/b"]}, "slurm['container_mounts'][0]", "without commas"),
        ({"container_options": {"bind": "/x"}}, "slurm['container_options']['bind']", "is set by the backend itself"),
        ({"container_options": {"nv": False}}, "slurm['container_options']['nv']", "must be True, a number or a"),
        ({"sbatch_options": ["x"]}, "slurm['sbatch_options']", r"must be a dict such as \{'wckey': 'x'\}"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_wrong_in_it(given, argument, words):
    with pytest.raises(InvalidArgument, match=words) as refused:
        SlurmOptions.from_document(given)
    assert refused.value.argument == argument


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("time", "10", "is set by the backend itself"),
        ("array", "0-3", "is set by the backend itself"),
        ("wrap", "rm", "is set by the backend itself"),
        ("requeue", True, "is set by the backend itself"),
        ("clusters", "all", "is set by the backend itself, or would break what it relies on"),
        ("help", True, "would break what it relies on"),
        ("version", True, "would break what it relies on"),
        ("uid", "0", "would break what it relies on"),
        ("mail-user", "x", r"has a place of its own: write slurm=\{'mail_user': …\}"),
        ("--wckey", "x", "is not an option's long name without its two dashes, such as 'wckey'"),
        ("A", "x", "is not an option's long name without its two dashes, such as 'wckey'"),
        ("wckey=x\n#SBATCH --wrap", "x", "is not an option's long name without its two dashes, such as 'wckey'"),
        (7, "x", "is not an option's long name without its two dashes, such as 'wckey'"),
        ("core_spec", "x", "without its two dashes, such as 'core-spec'"),
        ("--begin", "now", "without its two dashes, such as 'begin'"),
        ("contiguous", False, "must be True, a number or a string, not False; leave it out"),
        ("wckey", None, "must be a string, not None"),
        ("wckey", "a\nb", "a control character"),
    ],
)
def test_another_option_of_sbatch_is_named_with_what_is_wrong_in_it(name, value, words):
    with pytest.raises(InvalidArgument, match=words) as refused:
        SlurmOptions.from_document({"sbatch_options": {name: value}})
    assert refused.value.argument.startswith("slurm['sbatch_options'][")


@pytest.mark.parametrize("character", ["\n", "\r", "\0", "\x1b", "\x7f", '"', "'", "\\", "`", "$"])
def test_no_text_ends_its_line_or_its_quotes(character):
    for given in ({"comment": f"a{character}b"}, {"sbatch_options": {"wckey": f"a{character}b"}}):
        with pytest.raises(InvalidArgument, match="no line of a batch script can hold"):
            SlurmOptions.from_document(given)


@pytest.mark.parametrize("text", ["a b", "a # b", "x; touch broken", "--wrap=touch", "a --wrap=b", "ib&a100|x", "é ü"])
def test_any_other_text_is_the_value_of_one_option(text):
    line, requeue = SlurmOptions.from_document({"comment": text}).lines()
    assert shlex.split(line) == [f"--comment={text}"]
    assert requeue == "--requeue"


def test_a_command_line_has_words_for_what_is_no_text():
    words = {"gpus_per_node": "4", "exclusive": "True", "requeue": "false", "account": "true", "nodelist": "7"}
    words["modules"] = "openmpi/4.1.8,cuda"
    words["container_mounts"] = "/a,/b:/c"
    others = {"sbatch_options.contiguous": "true", "sbatch_options.wckey": "7", "container_options.nv": "true"}
    assert SlurmOptions.from_words({**words, **others}).to_document() == {
        "gpus_per_node": 4,
        "exclusive": True,
        "requeue": False,
        "account": "true",
        "nodelist": "7",
        "modules": ["openmpi/4.1.8", "cuda"],
        "container_mounts": ["/a", "/b:/c"],
        "container_options": {"nv": True},
        "sbatch_options": {"contiguous": True, "wckey": "7"},
    }
    assert SlurmOptions.from_words({}) == SlurmOptions()


@pytest.mark.parametrize(
    "word", ["sbatch_options", "sbatch_options.", "sbatch_options.time", "sbatch_options.mail-user"]
)
def test_a_command_line_is_held_to_the_same(word):
    with pytest.raises(InvalidArgument, match=r"slurm\['sbatch_options'\]"):
        SlurmOptions.from_words({word: "x"})
