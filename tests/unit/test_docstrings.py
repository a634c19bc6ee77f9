"""Every public class and function has a docstring, and every public method that does not implement a documented one.

A method may stay without one if its class inherits from one that documents it, or has all members of a Protocol of
these packages that does. So may `add` and `run` of a module of a command, which `cli.command_table.Command` documents.
"""

import ast
from functools import cache
from pathlib import Path

import estimator_container
import pytest

import estimator_sdk

PACKAGES = [Path(package.__file__).parent for package in (estimator_sdk, estimator_container)]
FILES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
COMMANDS = Path(estimator_sdk.__file__).parent / "cli" / "commands"
OF_A_COMMAND = {"add", "run"}


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def name_of(path):
    package = next(package for package in PACKAGES if path.is_relative_to(package))
    return str(path.relative_to(package.parent))


def last_name(node):
    """The name behind the last dot: `Store` of `port.Store`, `Generic` of `Generic[T]`."""
    node = node.value if isinstance(node, ast.Subscript) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def file_of(module, level, path):
    """The file that `from module import …` in the file `path` reads; None for one outside of the packages."""
    if level:
        start = path.parents[level - 1]
    else:
        package, _, module = module.partition(".")
        start = next((each for each in PACKAGES if each.name == package), None)
    if start is None:
        return None
    place = start.joinpath(*module.split(".")) if module else start
    return next((each for each in (place / "__init__.py", place.with_suffix(".py")) if each in FILES), None)


def find_class(name, path):
    """The class that a name means in a file, and the file that defines it; None for one outside of the packages."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node, path
    for node in ast.walk(tree_of(path)):
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if name == (alias.asname or alias.name):
                place = file_of(node.module or "", node.level, path)
                return find_class(alias.name, place) if place else None
    return None


def bases(made, path):
    """The classes of these packages that a class inherits from."""
    for base in made.bases:
        found = find_class(last_name(base), path)
        if found and found[0] is not made:
            yield found[0]
            yield from bases(*found)


def methods(made):
    return [each for each in made.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]


def members(made):
    """The public names that an instance has of this class itself: methods, fields, and what a method sets."""
    names = {each.name for each in methods(made)}
    names |= {each.target.id for each in made.body if isinstance(each, ast.AnnAssign)}
    for node in ast.walk(made):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and last_name(node.value) == "self":
            names.add(node.attr)
    return {name for name in names if not name.startswith("_")}


@cache
def protocols():
    """Each with its members."""
    made = [each for path in FILES for each in tree_of(path).body if isinstance(each, ast.ClassDef)]
    return [(each, found) for each in made if "Protocol" in map(last_name, each.bases) and (found := members(each))]


def implemented(made, path):
    """The names of the methods of a class that are documented where they are declared."""
    inherited = list(bases(made, path))
    has = set().union(*map(members, [made, *inherited]))
    declared = [*inherited, *(each for each, names in protocols() if each is not made and names <= has)]
    return {each.name for one in declared for each in methods(one) if ast.get_docstring(each)}


def is_documented_elsewhere(node):
    """Whether it is one of the forms of an overloaded function, or the setter of a property."""
    return any(last_name(each) in ("overload", "setter") for each in getattr(node, "decorator_list", []))


def undocumented(body, path, prefix="", may_lack=frozenset()):
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and node.name not in may_lack and not is_documented_elsewhere(node):
            yield f"{prefix}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from undocumented(node.body, path, f"{prefix}{node.name}.", implemented(node, path))


def test_what_is_public_has_a_docstring():
    found = {}
    for path in FILES:
        may_lack = OF_A_COMMAND if path.is_relative_to(COMMANDS) else frozenset()
        found[name_of(path)] = list(undocumented(tree_of(path).body, path, may_lack=may_lack))
    assert {name: lacking for name, lacking in found.items() if lacking} == {}


TEXT = '''
class Shelf:
    """A shelf."""

    def take(self):
        """Take what is on it."""

    def put(self, thing): ...

    def _private(self): ...


class Drawer(Shelf):
    def take(self): ...

    def close(self): ...


def build(): ...
'''


def test_a_missing_docstring_is_found(tmp_path):
    path = tmp_path / "shelf.py"
    path.write_text(TEXT)
    assert list(undocumented(tree_of(path).body, path)) == ["Shelf.put", "Drawer", "Drawer.close", "build"]


@pytest.mark.parametrize(
    ("module", "name", "methods"),
    [
        ("estimator_container/storage/s3/store.py", "S3Store", {"read", "write", "list"}),
        ("estimator_sdk/backends/process/backend.py", "ProcessHosts", {"start", "signal", "close", "wait_until_gone"}),
        ("estimator_container/worlds/distributions/torch_distributed.py", "TorchWorld", {"variables_of", "ranks_of"}),
    ],
)
def test_a_documented_method_is_found_where_it_is_declared(module, name, methods):
    path = next(path for path in FILES if name_of(path) == module)
    made, _ = find_class(name, path)
    assert methods <= implemented(made, path)
