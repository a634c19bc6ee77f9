"""A job in a cell of a real kernel, while it runs and afterwards, and what a real browser makes of it."""

from __future__ import annotations

import queue
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from selenium.webdriver.common.by import By

from estimator_sdk import Job, list_jobs

from . import kernels
from .browser import browser

DEADLINE = 300.0  # seconds, for a machine that does much else
EVIL = (
    "</pre></details></div><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "<style>* {display: none}</style>&lt;b&gt;<!--"
)
LOUD = f"""
from mpi4py import MPI
rank = MPI.COMM_WORLD.rank
print("loss:", 0.5 - rank / 10, flush=True)
if rank == 3:
    print({EVIL!r}, flush=True)
MPI.COMM_WORLD.Barrier()
"""
FAILS = f"raise ValueError({EVIL!r})\n"
WAITS = """
import os, pathlib, time
print("up", flush=True)
while not pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "go").exists():
    time.sleep(0.05)
print("gone on", flush=True)
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))


def estimator_of(tmp_path: Path, script: str, **arguments: object) -> str:
    """The code that makes an estimator in a cell."""
    path = tmp_path / "train.py"
    path.write_text(script)
    known = {"entry_point": str(path), "backend": "process", **arguments}
    return f"from estimator_sdk import Estimator, Job\nestimator = Estimator(**{known!r})"


def run(*cells: str) -> nbformat.NotebookNode:
    """Run cells in a kernel of their own, which is gone afterwards."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return kernels.execute(notebook, DEADLINE, allow_errors=True)


def shown(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.outputs]
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def test_a_browser_shows_the_executed_cells_with_their_folds_and_nothing_escapes(tmp_path):
    world = {"distribution": {"mpi": {"enabled": True, "processes_per_host": 2}}, "instance_count": 2}
    metrics = {"metric_definitions": [{"Name": "loss", "Regex": "loss: ([0-9.]+)"}]}
    (tmp_path / "fails.py").write_text(FAILS)
    notebook = run(
        estimator_of(tmp_path, LOUD, **world, **metrics),
        "job = estimator.fit()",
        f"Estimator(entry_point={str(tmp_path / 'fails.py')!r}, backend='process').fit()",
    )
    page = tmp_path / "page.html"
    exporter = HTMLExporter(template_name="lab", require_js_url="", mathjax_url="")
    page.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    errors = [output.ename for output in notebook.cells[2].outputs if output.output_type == "error"]
    assert errors == ["JobFailed"]
    job = list_jobs()[1]
    with browser(tmp_path) as driver:
        driver.get(page.as_uri())
        good, bad = driver.find_elements(By.CSS_SELECTOR, ".estimator-job")
        assert good.find_element(By.TAG_NAME, "b").text == job.name
        assert (good.find_element(By.CSS_SELECTOR, ".status").text) == "Completed"
        phases = [each.text.split()[0] for each in good.find_elements(By.CSS_SELECTOR, "li.phase")]
        assert phases == ["code", "channels", "world", "run"]
        cells = [each.text for each in good.find_elements(By.CSS_SELECTOR, "table.metrics td")]
        assert (cells[0], cells[2], cells[-1]) == ("loss", "0.2 – 0.5", "4 from 4 ranks")
        curve = good.find_element(By.CSS_SELECTOR, "svg.curve")
        assert curve.is_displayed() and curve.size["width"] > 100 and curve.size["height"] < 50
        assert str(job.model_data) in [each.get_attribute("href") for each in good.find_elements(By.TAG_NAME, "a")]

        folds = good.find_elements(By.TAG_NAME, "details")
        titles = [fold.find_element(By.TAG_NAME, "summary").text.splitlines() for fold in folds]
        # The toolkit may have something to say of a machine that does much else.
        assert titles[0] == ["ranks 0–2 1 line each", "loss: 0.5"]
        assert titles[4][0] == "rank 3 2 lines" and EVIL in titles[4][1]
        assert all("toolkit" in title[0] for title in titles[5:] if title)
        assert not folds[2].is_displayed()
        log = folds[4].find_element(By.TAG_NAME, "pre")
        assert not log.is_displayed()
        folds[4].find_element(By.TAG_NAME, "summary").click()
        assert log.is_displayed() and log.text == f"loss: 0.2\n{EVIL}"
        folds[4].find_element(By.TAG_NAME, "summary").click()
        assert not log.is_displayed()
        key = f"estimator-job {job.name} {folds[4].get_attribute('data-fold')}"
        click = "arguments[0].click(); return window.sessionStorage.getItem(arguments[1])"
        for state in ("open", "folded"):  # kept before anything else can happen, such as a new cell in its place
            assert driver.execute_script(click, folds[4].find_element(By.TAG_NAME, "summary"), key) == state
        folds[0].find_element(By.TAG_NAME, "summary").click()
        assert folds[2].find_element(By.TAG_NAME, "summary").text == "rank 1 – 1 line"
        folds[2].find_element(By.TAG_NAME, "summary").click()

        assert bad.find_element(By.CSS_SELECTOR, ".status").text == "Failed"
        why = bad.find_element(By.CSS_SELECTOR, "details[data-fold=why]")
        assert why.find_element(By.TAG_NAME, "pre").is_displayed() and f"ValueError: {EVIL}" in why.text

        assert driver.execute_script("return window.hacked") is None
        for cell in (good, bad):
            made = driver.execute_script(
                "return [...arguments[0].querySelectorAll('*')].map(each => each.localName)", cell
            )
            assert made.count("style") == made.count("script") == 1 and "img" not in made

        driver.refresh()  # as a cell that is drawn again: what was open is open
        redrawn = driver.find_element(By.CSS_SELECTOR, ".estimator-job").find_elements(By.TAG_NAME, "pre")
        assert [each.is_displayed() for each in redrawn[:4]] == [False, True, False, False]
        said = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        assert [entry for entry in said if "estimator" in entry["message"]] == []


def test_after_a_restart_of_the_kernel_attach_shows_the_same(tmp_path):
    before = run(estimator_of(tmp_path, "print('hello')\n"), "estimator.fit(job_name='kept')")
    after = run("from estimator_sdk import Job", "Job.attach('kept')")
    (first,) = shown(before)
    assert shown(after) == [first] and "rank 0" not in first and "<b>algo-1</b> <small>1 line</small>" in first


class Kernel:
    """A kernel whose messages are looked at one by one, as a front end gets them."""

    def __init__(self, client) -> None:
        self.client = client
        self.drawn: dict[str, str] = {}
        """The HTML of each display now."""
        self._over: set[str] = set()

    def until(self, condition) -> None:
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, f"it was not shown in time; now {self.drawn}"
            try:
                self._take(self.client.get_iopub_msg(timeout=1))
            except queue.Empty:
                continue

    def run(self, code: str) -> None:
        """Run a cell to its end."""
        asked = self.client.execute(textwrap.dedent(code))
        self.until(lambda: asked in self._over)

    def start(self, code: str) -> None:
        self.client.execute(textwrap.dedent(code))

    def _take(self, message) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        assert kind != "error", content["traceback"]
        if kind in ("display_data", "update_display_data") and "text/html" in content["data"]:
            self.drawn[content["transient"]["display_id"]] = content["data"]["text/html"]
        if kind == "status" and content["execution_state"] == "idle":
            self._over.add(message["parent_header"]["msg_id"])


@contextmanager
def kernel() -> Iterator[Kernel]:
    with kernels.kernel() as client:
        yield Kernel(client)


def go(name: str) -> None:
    (Job.attach(name).folder / "hosts" / "algo-1" / "output" / "data" / "go").touch()


def test_a_cell_that_waits_is_drawn_while_the_job_runs(tmp_path):
    with kernel() as notebook:
        notebook.run(estimator_of(tmp_path, WAITS))
        notebook.start("job = estimator.fit(job_name='waits')")
        notebook.until(lambda: any("InProgress" in html and ">up</pre>" in html for html in notebook.drawn.values()))
        go("waits")
        notebook.until(lambda: any("up\ngone on</pre>" in html and "Completed" in html for html in _of(notebook)))
        assert len(notebook.drawn) == 1


def test_a_job_that_nobody_waits_for_goes_on_in_its_cell_and_the_next_cells_run(tmp_path):
    with kernel() as notebook:
        notebook.run(estimator_of(tmp_path, WAITS))
        notebook.run("estimator.fit(wait=False, job_name='alone')")
        notebook.until(lambda: any("InProgress" in html and ">up</pre>" in html for html in _of(notebook)))
        notebook.run("assert 1 + 1 == 2")
    with kernel() as restarted:  # the one before was killed in the middle of the job
        restarted.run("from estimator_sdk import Job; display(Job.attach('alone'))")
        restarted.until(lambda: any("InProgress" in html and ">up</pre>" in html for html in _of(restarted)))
        go("alone")
        restarted.until(lambda: any("up\ngone on</pre>" in html and "Completed" in html for html in _of(restarted)))


def test_an_interrupted_cell_stops_the_job_and_shows_it(tmp_path):
    with kernel() as notebook:
        notebook.run(estimator_of(tmp_path, WAITS))
        notebook.run(
            """
            import signal, threading, os
            def interrupt():
                for line in Job.attach("interrupted").logs(follow=True):
                    if line.data == b"up\\n":
                        os.kill(os.getpid(), signal.SIGINT)
                        return
            def when_started():
                import time
                from estimator_sdk import JobNotFound
                while True:
                    try:
                        return interrupt()
                    except JobNotFound:
                        time.sleep(0.05)
            threading.Thread(target=when_started).start()
            try:
                estimator.fit(job_name="interrupted")
            except KeyboardInterrupt:
                print("interrupted")
            """
        )
        notebook.until(lambda: any('data-status="Stopped"' in html for html in _of(notebook)))
        (html,) = _of(notebook)
        assert "stopping; press Ctrl-C again" in html and html.count(">up</pre>") == 1


def _of(notebook: Kernel) -> list[str]:
    return list(notebook.drawn.values())


def test_in_a_terminal_it_is_text(tmp_path, capsys):
    from IPython.core.interactiveshell import InteractiveShell

    from estimator_sdk import Estimator

    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")
    job = Estimator(entry_point=script, backend="process").fit(logs="none", job_name="text")
    capsys.readouterr()
    InteractiveShell.instance().run_cell("from estimator_sdk import Job; Job.attach('text')")
    InteractiveShell.clear_instance()
    written = capsys.readouterr().out
    assert "text: Completed, " in written and "algo-1: 1" in written and "<" not in written
    assert str(job) in written
