import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from estimator_sdk import Estimator
from estimator_sdk.job_files import schema
from estimator_sdk.values.conform import field_hints

DOCUMENT = Path(__file__).parents[4] / "docs" / "job_files.md"
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
JOB = schema.build()["definitions"]["job"]["properties"]


def test_what_is_published_is_the_schema_of_today_s_estimator():
    """If it is not: python -m estimator_sdk.job_files.schema > estimator_sdk/job_files/job.schema.json"""
    assert schema.published() == json.loads(json.dumps(schema.build()))


def test_it_is_a_json_schema():
    Draft7Validator.check_schema(schema.published())


def test_every_argument_has_a_key_and_every_documented_one_its_text():
    assert {*field_hints(Estimator), "framework", "framework_version", "py_version", "inputs"} == set(JOB)
    assert "The script: a path in `source_dir`" in JOB["entry_point"]["description"]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_document_are_of_it(example):
    value = YAML(typ="safe", pure=True).load(example)
    assert list(Draft7Validator(schema.published()).iter_errors(value)) == []


def test_the_document_has_an_example_of_each_form():
    assert [example.partition(":")[0] for example in EXAMPLES] == ["source_dir", "project"]
