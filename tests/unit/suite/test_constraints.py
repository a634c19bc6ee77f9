"""The versions of packages that the tests run with."""

from importlib.metadata import distributions

from packaging.specifiers import SpecifierSet

DEBIAN = "3.11.2"
"""The Python of Debian 12, which the README promises to do with; some packages want a later 3.11."""


def test_every_package_of_the_tests_can_be_had_on_the_python_of_debian():
    found = {each.name: each.metadata.get("Requires-Python") for each in distributions()}
    assert len(found) > 50
    assert {name: wanted for name, wanted in found.items() if DEBIAN not in SpecifierSet(wanted or "")} == {}
