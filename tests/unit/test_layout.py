"""How the packages are laid out, besides what imports what, which import-linter holds (`pyproject.toml`)."""

import ast
from pathlib import Path

import estimator_container
import pytest

import estimator_sdk

MOST_ON_TOP, MOST_BELOW = 15, 12
MOST_LINES = 300
PACKAGES = [Path(package.__file__).parent for package in (estimator_sdk, estimator_container)]
FOLDERS = sorted({path.parent for package in PACKAGES for path in package.rglob("*.py")})


def name_of(path):
    package = next(package for package in PACKAGES if path.is_relative_to(package))
    return str(path.relative_to(package.parent))


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_has_few_entries(folder):
    modules = [path.stem for path in folder.glob("*.py") if not path.stem.startswith("__")]
    folders = [path.name for path in folder.iterdir() if (path / "__init__.py").exists()]
    assert len(modules) + len(folders) <= (MOST_ON_TOP if folder in PACKAGES else MOST_BELOW)


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_says_what_lives_there(folder):
    assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
