import os
from dataclasses import dataclass

from estimator_sdk.backends.slurm.allocation import program
from estimator_sdk.backends.slurm.files import BEFORE_MODULES


@dataclass
class WithPath:
    """A plan, as far as what its hosts inherit."""

    def inherited_from(self, variables):
        return {name: value for name, value in variables.items() if name == "PATH"}


HERE = {"PATH": "/module/bin:/bin", "SLURM_JOB_ID": "7", "MPI_HOME": "/m", "OWN": "x"}


def test_hosts_have_what_the_plan_lets_them_inherit_and_what_slurm_says(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(HERE))
    assert program._of_hosts(WithPath()) == {"PATH": "/module/bin:/bin", "SLURM_JOB_ID": "7"}


def test_of_a_script_that_loads_modules_they_have_what_is_new(monkeypatch):
    monkeypatch.setattr(os, "environ", {**HERE, BEFORE_MODULES: "PATH\nOWN\nSLURM_JOB_ID"})
    assert program._of_hosts(WithPath()) == {"PATH": "/module/bin:/bin", "SLURM_JOB_ID": "7", "MPI_HOME": "/m"}
