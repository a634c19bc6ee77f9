"""What the documentation shows for somebody's batch script asks for what that script asks for."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[5]


def test_the_example_for_a_batch_script_is_planned_as_that_script_is(tmp_path, monkeypatch):
    text = (ROOT / "docs" / "from_sbatch.md").read_text(encoding="utf-8")
    program = text.partition("```python\n")[2].partition("```")[0]
    shared = tmp_path / "shared"
    (shared / "data" / "digits").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ESTIMATOR_HOME", str(shared / "home"))
    (tmp_path / "train.py").write_text("print(1)")
    found: dict[str, object] = {}
    program = program.replace("\nEstimator(", "\nplanned = Estimator(").replace(".fit(", ".plan(")
    exec(program.replace("/shared", str(shared)), found)
    planned = found["planned"]
    for line in ("--partition=gpu", "--account=lab", "--nodes=2", "--gpus-per-node=4", "--requeue"):
        assert f"#SBATCH {line}\n" in planned.script, line
    assert "module load openmpi/4.1.8" in planned.script
    assert (planned.processes_per_host, planned.max_run) == (4, 8 * 3600)
