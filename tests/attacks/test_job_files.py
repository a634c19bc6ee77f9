"""Job files that nobody wrote in good faith: each is a job, or one sentence with the file and the line, and soon."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator_sdk import EstimatorError, InvalidArgument, job_files
from estimator_sdk.job_files import schema
from tests.waiting import SECONDS

EXAMPLES = re.findall(
    r"^```yaml\n(.*?)^```", (Path(__file__).parents[2] / "docs" / "job_files.md").read_text(), re.DOTALL | re.MULTILINE
)
ROOM = 1 << 29  # bytes of address space, of which the interpreter takes a tenth
JOB = "entry_point: a\n"


def said(folder: Path, text: str | bytes, name: str = "job.yaml") -> str:
    """What is said of a file, without its name; empty where it is a job."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a worker is no container, and has no limits
        try:
            job_files.read(path)
        except EstimatorError as error:
            message = str(error)
            assert message.startswith(f"{path}:") and "\n" not in message and len(message) < 3000, message
            return message.removeprefix(f"{path}:")
    return ""


def chain(links: int, first: str, link: str) -> str:
    """Anchors of which each is made of the one before."""
    return f"a0: &a0 {first}\n" + "".join(f"a{n}: &a{n} {link.format(f'*a{n - 1}')}\n" for n in range(1, links))


BOMBS = {
    "laughs": chain(12, "[x]", "[{0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}, {0}]"),
    "laughs as mappings": chain(30, "{x: x}", "{{l: {0}, r: {0}}}"),
    "a long string many times": "a: &a "
    + "x" * 100_000
    + "\nb: &b ["
    + "*a, " * 1000
    + "]\nc: ["
    + "*b, " * 1000
    + "]",
    "depth by aliases": chain(100, "[" * 40 + "]" * 40, "[" * 40 + "{0}" + "]" * 40),
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_aliases_do_not_grow_without_bound(tmp_path, text):
    """In a process of its own, which a file that grows ends by itself."""
    (tmp_path / "job.yaml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "estimator_sdk", "fit", "job.yaml", "--dry-run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM)),
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr[-2000:]
    assert re.match(r"estimator fit: job.yaml:\d+: (with its aliases|lists and mappings)", done.stderr)


REFUSED = {
    "3,000 brackets": (JOB + "arguments: " + "[" * 3000, 2, "more than 50 deep"),
    "3,000 braces": (JOB + "hyperparameters: " + "{a: " * 3000, 2, "more than 50 deep"),
    "3,000 indentations": (
        "hyperparameters:\n" + "".join(" " * n + "a:\n" for n in range(1, 200)),
        51,
        "more than 50 deep",
    ),
    "complex keys in one another": (JOB + "? " * 3000, 2, "more than 50 deep"),
    "a program as a list": (
        JOB + "arguments: !!python/object/apply:os.system [id]",
        2,
        "python/object/apply:os.system' has no meaning",
    ),
    "a program as a mapping": (
        JOB + "environment: !!python/object:os.environ {a: b}",
        2,
        "python/object:os.environ' has no",
    ),
    "a program as the file": ("!!python/object:os.environ\n" + JOB, 1, "has no meaning in a job file"),
    "a program as a key": (JOB + "? !!python/name:os.system a\n: b", 2, "the key 'a' is not a string"),
    "a set": (JOB + "hyperparameters: !!set {a, b}", 2, "2002:set' has no meaning"),
    "an ordered mapping": (JOB + "hyperparameters: !!omap [a: b]", 2, "2002:omap' has no meaning"),
    "a list that says it is a string": (JOB + "tags: !!str [a]", 2, "2002:str' has no meaning"),
    "a truth in other words": (JOB + "use_spot_instances: !!bool yes", 2, "'yes' does not match its tag"),
    "a nothing that is something": (JOB + "hyperparameters: {a: !!null b}", 2, "'b' does not match its tag"),
    "2.0 workers": (
        "project: a\ntrain:\n  framework: tensorflow\n  run: b\n  tensorflow: {horovod: {workers: 2.0}}",
        5,
        "must be an int, not 2.0",
    ),
    "no project": ("project: ''\ntrain: {framework: tensorflow, run: a}", 1, "project is empty; write a name"),
    "more hosts than there are": (JOB + "instance_count: 1000000000", 2, "must be at most 5000, not 1000000000"),
    "a tag by another name": ("%TAG ! tag:yaml.org,2002:\n---\n" + JOB + "tags: !set {a}", 4, "2002:set' has no"),
    "a tag that is no text": (JOB + "tags: !%ff [a]", 2, "not valid YAML"),
    "a merge key": ("environment: &e {A: b}\nhyperparameters:\n  <<: *e\n" + JOB, 3, "no merge keys; write the keys"),
    "a key twice by an alias": (
        "base_job_name: &k max_run\n" + JOB + "*k : 1\nmax_run: 2",
        4,
        "the key 'max_run' is already in line 1",
    ),
    "another version of YAML": ("%YAML 1.1\n---\nuse_spot_instances: yes\n" + JOB, 2, "YAML 1.2; remove the line"),
    "a version from the future": ("%YAML 9.9\n---\n" + JOB, 1, "not valid YAML"),
    "an escape beyond Unicode": (JOB + 'base_job_name: "\\UFFFFFFFF"', 2, "not valid YAML"),
    "half a character": (JOB + 'base_job_name: "\\ud800"', 2, "can hold the character '\\ud800'"),
    "a NUL in a path": (JOB + 'inputs: "a\\0b"', 2, "can hold the character '\\x00'"),
    "a NUL in a key": (JOB + 'inputs: {"a\\0b": c}', 2, "can hold the character '\\x00'"),
    "5,000 digits": (JOB + "max_run: " + "9" * 5000, 2, "a number of 5000 characters is too long"),
    "5,000 digits of hexadecimals": (JOB + "max_run: 0x" + "f" * 5000, 2, "a number of 5002 characters is too long"),
    "a number without end": (JOB + "stop_timeout: 1e400", 2, "larger than a number can be"),
    "a number of no digits": (JOB + "max_run: -_", 2, "'-_' is not a number"),
    "a long name": (JOB + "? " + "k" * 50_000 + "\n: 1", 2, "is not known"),
    "a long value": (JOB + "max_run: " + "k" * 50_000, 2, "must be a whole number"),
    "too many bytes": (JOB + "#" * (1 << 18), 1, "larger than 262144 bytes"),
    "a pattern in endless brackets": (
        JOB + "metric_definitions: [{Name: a, Regex: '" + "(" * 20_000 + "'}]",
        2,
        "is not a valid pattern",
    ),
}


@pytest.mark.parametrize(("text", "line", "words"), REFUSED.values(), ids=REFUSED)
def test_what_no_person_wrote_is_refused_with_its_line(tmp_path, text, line, words):
    sentence = said(tmp_path, text)
    assert sentence.startswith(f"{line}: ") and words in sentence, sentence


@pytest.mark.parametrize(
    "text",
    [
        "\N{ZERO WIDTH NO-BREAK SPACE}" + JOB,
        "%YAML 1.2\n---\n" + JOB,
        "entry_point: !!str a\nmax_run: !!int 5\nhyperparameters: !!map {layers: !!seq [1]}",
        "entry_point: &a a\nhyperparameters: {first: *a, second: &a b, third: *a, sign: =, arrows: <<}",
        "entry_point: a\nhyperparameters: " + "[" * 0 + "{a: " * 40 + "1" + "}" * 40,
    ],
    ids=["a byte order mark", "its version", "tags that say what is", "an anchor that is set again", "40 deep"],
)
def test_what_is_unusual_and_right_is_read(tmp_path, text):
    assert said(tmp_path, text) == ""


def test_a_file_without_an_end_is_not_read_to_its_end(tmp_path):
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    with pytest.raises(InvalidArgument, match=r"zero.yaml:1: the file is larger"):
        job_files.read(tmp_path / "zero.yaml")


def test_a_path_that_no_file_can_have_is_a_sentence(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read: its path holds a NUL"):
        job_files.read(f"{tmp_path}/a\0b")


# What any document comes to: a job or a sentence.

WORDS = st.sampled_from(
    [
        *"-?:,[]{}#&*!|>'\"%@`~=<.",
        *("\n", "\n  ", "\t", " ", "- ", ": ", "? ", "---\n", "...\n", "\r", "\x85", "\u2028", "\\", "\0", "\ud800"),
        *("&a ", "*a", "!!str ", "!!int ", "!x ", "%YAML 1.2\n", "%TAG ! x\n", "<<: "),
        *("0x", "1e9", ".inf", ".nan", "-_", "2030-01-01", "true", "null", "a", "\N{SNOWMAN}"),
        *("entry_point", "steps", "project", "train", "run", "inputs"),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from(sorted(schema.published()["definitions"]["job"]["properties"]))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | KEYS, inner, max_size=3),
    max_leaves=8,
)


def form_of(definition: dict, top: dict, depth: int = 0) -> st.SearchStrategy:
    """Values that are of a schema, and values that are not."""
    if "$ref" in definition:
        return form_of(top["definitions"][definition["$ref"].rpartition("/")[2]], top, depth)
    if "anyOf" in definition:
        return st.one_of([form_of(each, top, depth) for each in definition["anyOf"]])
    if "enum" in definition:
        return st.sampled_from(definition["enum"])
    kinds = {"string": st.text(max_size=8), "integer": st.integers(), "number": st.floats() | st.integers()}
    kind = definition.get("type")
    if kind == "array" and depth < 4:
        return st.lists(form_of(definition["items"], top, depth + 1), max_size=3)
    if kind == "object" and "properties" in definition and depth < 4:
        inner = {name: form_of(each, top, depth + 1) for name, each in definition["properties"].items()}
        needed = {name: inner.pop(name) for name in definition.get("required", ())}
        return st.fixed_dictionaries(needed, optional=inner)
    return kinds.get(str(kind), VALUES)


PUBLISHED = schema.published()
OURS = st.dictionaries(KEYS, st.none()).flatmap(
    lambda keys: st.fixed_dictionaries(
        {key: form_of(PUBLISHED["definitions"]["job"]["properties"][key], PUBLISHED) | VALUES for key in keys}
    )
)
RISEML = form_of(PUBLISHED["definitions"]["riseml"], PUBLISHED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("files")


@given(words=st.lists(WORDS, max_size=30))
def test_any_text_is_a_job_or_a_sentence(folder, words):
    said(folder, "".join(words))


@given(data=st.binary(max_size=40))
def test_any_bytes_are_a_job_or_a_sentence(folder, data):
    said(folder, data)


@given(
    example=st.sampled_from(EXAMPLES), at=st.integers(0, 700), cut=st.integers(0, 20), words=st.lists(WORDS, max_size=5)
)
def test_any_change_of_an_example_is_a_job_or_a_sentence(folder, example, at, cut, words):
    said(folder, example[:at] + "".join(words) + example[at + cut :])


@given(document=OURS | RISEML | VALUES)
def test_any_document_is_a_job_or_a_sentence(folder, document):
    """JSON is YAML."""
    said(folder, json.dumps(document))
