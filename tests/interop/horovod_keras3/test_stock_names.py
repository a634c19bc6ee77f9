"""Horovod's own names on Keras 3: ranks come to what one process comes to on their joint batches, bit for bit alike.

TensorFlow takes seconds to import, so one job runs all cases: on this machine's TensorFlow, and with `--all-images` in
each other image that has Keras 3. It has 3 ranks, two of them a process set, and 4 where Adasum is a case: that
Adasum keeps two ranks alike is seen in `tests/interop/drift`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_sdk import TensorFlow
from estimator_sdk.backends.docker.images import catalogue

JOB = Path(__file__).parent / "job"
CASES = [
    pytest.param(name, marks=pytest.mark.long if variant else ())
    for path in sorted(JOB.glob("*.py"))
    for variant, name in re.findall(r"^(@variant\n)?def case_(\w+)", path.read_text(), re.MULTILINE)
]

ADASUM = "op_adasum_on_a_loop"
"""It is for numbers of ranks that are powers of two."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`version` is None on processes."""
    versions: list[str | None] = [None]
    if metafunc.config.getoption("all_images"):
        images = [image for image in catalogue.everything() if image.framework == "tensorflow"]
        older = [image for image in images if not image.is_newest]
        versions += [
            image.version for image in older if not any(each.startswith("keras==2.") for each in image.packages)
        ]
    metafunc.parametrize("version", versions, scope="module")


@pytest.fixture(scope="module")
def job_lines(
    request: pytest.FixtureRequest, version: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[tuple[str, str]]]:
    chosen = {item.callspec.params.get("case") for item in request.session.items if item.path == request.path}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESTIMATOR_HOME", str(tmp_path_factory.mktemp("home")))
        ranks = 4 if ADASUM in chosen else 3
        world = {"mpi": {"enabled": True, "processes_per_host": ranks}}
        job = TensorFlow(
            entry_point="run_cases.py",
            source_dir=JOB,
            arguments=sorted(chosen - {None}),
            distribution=world,
            framework_version=version,
            backend="docker" if version else "process",
        ).fit(logs="none")
        yield [(line.stream, line.data.decode()) for rank in range(ranks) for line in job.logs(rank=rank)]


@pytest.fixture(scope="module")
def ends_of_words(job_lines: list[tuple[str, str]]) -> dict[str, tuple[str, str | None]]:
    """How an older word ends today, and the line after that."""
    (found,) = (json.loads(text.removeprefix("WORDS ")) for _, text in job_lines if text.startswith("WORDS "))
    return found


@pytest.fixture(scope="module")
def results(job_lines: list[tuple[str, str]]) -> dict[str, dict[str, object]]:
    found = (json.loads(text.removeprefix("CASE ")) for _, text in job_lines if text.startswith("CASE "))
    return {result["case"]: result for result in found}


@pytest.mark.parametrize("case", CASES)
def test_ranks_come_to_what_one_process_comes_to(results: dict[str, dict[str, object]], case: str) -> None:
    result = results[case]
    assert not result["error"], result["error"]
    assert result["agree"], "the ranks drifted apart"
    assert result["difference"] <= result["tolerance"], result


def test_one_rank_says_once_that_names_are_adapted(job_lines: list[tuple[str, str]]) -> None:
    said = [text for _, text in job_lines if "is adapted to Keras" in text]
    assert len(said) == 1 and "ESTIMATOR_HOROVOD_KERAS3=off" in said[0]


def test_one_rank_says_what_elastic_training_is_here(job_lines: list[tuple[str, str]]) -> None:
    said = [text for stream, text in job_lines if stream == "stderr" and "hvd.elastic.run calls train() once" in text]
    calls = 4  # of the cases
    assert len(said) == calls and all("max_retry_attempts=" in text for text in said)


def words() -> dict[str, str]:
    """The table of the job, which imports what is not to be imported here."""
    source = (JOB / "words.py").read_text().partition("WORDS = ")[2].partition("\n}\n")[0]
    return ast.literal_eval(source + "\n}")


@pytest.mark.parametrize(("word", "today"), words().items())
def test_an_older_word_ends_in_an_error_and_a_line_about_todays(
    ends_of_words: dict[str, tuple[str, str | None]], word: str, today: str
) -> None:
    error, line = ends_of_words[word]
    assert error and line is not None and today in line, (error, line)
