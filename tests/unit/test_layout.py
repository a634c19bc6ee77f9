"""How the packages are laid out, besides what imports what, which import-linter holds (`pyproject.toml`)."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import estimator_container
import pytest

import estimator_sdk

MOST_ON_TOP, MOST_BELOW = 16, 12
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 300, 60
PACKAGES = [Path(package.__file__).parent for package in (estimator_sdk, estimator_container)]
ROOT = Path(__file__).parents[2]
READMES = {"estimator_sdk": ROOT / "README.md", "estimator_container": ROOT / "container" / "README.md"}
FILES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})


def name_of(path):
    package = next(package for package in PACKAGES if path.is_relative_to(package))
    return str(path.relative_to(package.parent))


def entries_of(folder):
    modules = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
    return modules + [path.name for path in folder.iterdir() if (path / "__init__.py").exists()]


def test_folders_have_few_entries():
    counts = {folder: len(entries_of(folder)) for folder in FOLDERS}
    allowed = {folder: MOST_ON_TOP if folder in PACKAGES else MOST_BELOW for folder in FOLDERS}
    assert {name_of(folder): count for folder, count in counts.items() if count > allowed[folder]} == {}


def test_folders_say_what_lives_there():
    texts = {folder: (folder / "__init__.py").read_text() for folder in FOLDERS}
    assert [name_of(folder) for folder, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_the_picture_shows_every_room_of_a_package(package):
    document = (ROOT / "docs" / "contributing.md").read_text()
    picture = document.partition(f"{package.name}/ ")[2].partition("\n\n")[0].partition("```")[0]
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").exists()}
    modules = {path.name for path in package.glob("*.py") if not path.stem.startswith("__")}
    assert set(re.findall(r"^  (?:\S+\.py )?(\w+)/", picture, re.MULTILINE)) == rooms
    assert modules <= set(re.findall(r"^  (\w+\.py)", picture, re.MULTILINE))


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_the_readme_of_a_package_shows_its_rooms_in_the_order_of_their_imports(package):
    of_package = rf'^containers = \["{package.name}"\].*?^layers = \[(.*?)^\]'
    (layers,) = re.findall(of_package, (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    (picture,) = [line for line in READMES[package.name].read_text().splitlines() if " ─► " in line]
    shown = [re.findall(r"\w+", layer) for layer in picture.split(" ─► ")]
    assert shown == [re.findall(r"\w+", layer) for layer in re.findall('"(.*)"', layers) if layer != "__main__"]


def test_no_file_is_long():
    long = {name_of(path): lines for path in FILES if (lines := path.read_text().count("\n")) > MOST_LINES}
    assert long == {}


def test_no_function_is_long():
    functions = [
        (node.end_lineno - node.lineno + 1, f"{name_of(path)}:{node.lineno}")
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [place for lines, place in functions if lines > MOST_LINES_OF_A_FUNCTION] == []


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{name_of(path)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
