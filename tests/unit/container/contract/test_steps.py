import pytest
from estimator_container.contract.reserved import Reserved, WrongHyperparameter
from estimator_container.contract.steps import Step, from_value, to_value

PYTHON = "/venv/bin/python"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("python train.py", ["train.py"]),
        ("python3 -u run/train.py --lr 0.1", ["run/train.py", "--lr", "0.1"]),
        ("python -m pkg.train --name 'a  b' \"c'd\"", ["-m", "pkg.train", "--name", "a  b", "c'd"]),
    ],
)
def test_a_line_of_python_alone_needs_no_shell(line, words):
    runner = ["-m", "estimator_container.ranks.lone_script"]
    assert Step("a", line).command(PYTHON, False) == [PYTHON, "-u", *runner, *words]
    runner = ["-m", "estimator_container.ranks.script_runner"]
    assert Step("a", line).command(PYTHON, True) == [PYTHON, "-u", *runner, *words]


@pytest.mark.parametrize(
    "line",
    [
        "echo hello",
        "python train.py > log",
        "python train.py $LR",
        "python train.py *.csv",
        "python train.py ~/data",
        "python train.py # really",
        "python train.py\npython test.py",
        "python train.py; python test.py",
        "LR=1 python train.py",
        "python train.py 'unclosed",
        "/usr/bin/python train.py",
        "",
    ],
)
def test_any_other_line_is_a_shell_s(line):
    assert Step("a", line).command(PYTHON, True) == ["/bin/sh", "-e", "-c", line]


def test_steps_come_back_as_they_went():
    steps = (Step("1", "a 'b'\nc"), Step("train", "ü"))
    assert from_value(to_value(steps)) == steps


@pytest.mark.parametrize(
    "wrong",
    [
        "python train.py",
        [],
        {},
        ["python train.py"],
        [{"name": "a"}],
        [{"name": "a", "run": ""}],
        [{"name": "a", "run": "b\0"}],
        [{"name": "a", "run": 1}],
        [{"name": "a", "run": "b", "more": "c"}],
    ],
)
def test_what_no_estimator_makes_is_refused(wrong):
    with pytest.raises(WrongHyperparameter, match="^sagemaker_estimator_steps must be a list such as"):
        Reserved.read({"sagemaker_estimator_steps": wrong})
