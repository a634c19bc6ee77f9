"""Debug output is for who asks: an application's own logging, the variable, or the command line."""

import os
import subprocess
import sys

import pytest

PLAN = """
{first}
from estimator_sdk import Estimator
estimator = Estimator(entry_point="train.py")
{second}
estimator.plan()
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "train.py").write_text("pass\n")

    def run(*words, **variables):
        environment = {**os.environ, "ESTIMATOR_HOME": str(tmp_path / "home"), **variables}
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        )

    return run


def test_nobody_who_did_not_ask_sees_anything(run):
    assert run("-c", PLAN.format(first="import logging", second="")).stderr == ""


def test_an_application_sees_it_among_its_own(run):
    listen = "logging.basicConfig(level=logging.DEBUG, format='%(name)s %(module)s')"
    assert "estimator_sdk launch" in run("-c", PLAN.format(first="import logging", second=listen)).stderr


def test_the_variable_shows_it(run):
    shown = run("-c", PLAN.format(first="", second=""), ESTIMATOR_LOG="debug").stderr
    assert " launch: the code bundle is " in shown and "planned for process: 1 hosts, 1 ranks" in shown


def test_another_value_of_the_variable_is_named(run):
    shown = run("-c", PLAN.format(first="", second=""), ESTIMATOR_LOG="verbose").stderr
    assert "ESTIMATOR_LOG is 'verbose', which is not a valid value; set it to debug, or remove it" in shown


def test_the_command_line_shows_it(run):
    shown = run("-m", "estimator_sdk", "--debug", "plan", "--", "python", "train.py")
    assert " launch: the code bundle is " in shown.stderr and "train.py" in shown.stdout


def test_who_asks_twice_sees_it_once(run):
    shown = run("-m", "estimator_sdk", "--debug", "plan", "--", "python", "train.py", ESTIMATOR_LOG="debug").stderr
    assert shown.count("the code bundle is ") == 1
