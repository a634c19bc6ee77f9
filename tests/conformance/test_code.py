"""C: the user's code."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from estimator_sdk import BackendError, Estimator, InvalidArgument, JobSpec, backends
from estimator_sdk.estimator import launch

TREE = """
import hashlib, json, os
tree = {}
for folder, folders, names in os.walk("."):
    for name in [*names, *(each for each in folders if os.path.islink(os.path.join(folder, each)))]:
        path = os.path.relpath(os.path.join(folder, name))
        if os.path.islink(path):
            tree[path] = "-> " + os.readlink(path)
        else:
            digest = hashlib.sha256(open(path, "rb").read()).hexdigest()
            tree[path] = f"{digest} {'x' if os.access(path, os.X_OK) else '-'}"
print(json.dumps([os.getcwd(), os.environ["SM_SOURCE_DIR"], tree]))
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.law("C1")
def test_an_entry_point_alone(where, out, tmp_path):
    path = tmp_path / "alone.py"
    path.write_text(TREE)
    (tmp_path / "neighbour.txt").write_text("not part of the job")
    job = Estimator(entry_point=str(path), **where).fit(logs="none")
    folder, code, tree = json.loads(out(job))
    assert folder == os.path.realpath(code)
    assert list(tree) == ["alone.py"]


@pytest.mark.law("C1")
def test_a_source_folder_arrives_byte_for_byte(script, out):
    binary = bytes(range(256)) * 300
    estimator = script.estimator(
        {
            "train.py": TREE,
            "empty": b"",
            "data/weights.bin": binary,
            "tools/run": b"#!/bin/sh\n",
            "with space/ü.txt": "é",
        }
    )
    root = Path(str(estimator.source_dir))
    (root / "tools/run").chmod(0o755)
    (root / "link").symlink_to("data/weights.bin")
    (root / "tools/up").symlink_to("../data")
    _, _, tree = json.loads(out(estimator.fit(logs="none")))
    del tree["train.py"]
    assert tree == {
        "empty": f"{digest(b'')} -",
        "data/weights.bin": f"{digest(binary)} -",
        "tools/run": f"{digest(b'#!/bin/sh' + bytes([10]))} x",
        "with space/ü.txt": f"{digest('é'.encode())} -",
        "link": "-> data/weights.bin",
        "tools/up": "-> ../data",
    }


@pytest.mark.law("C1")
def test_dependencies_can_be_imported(script, out, tmp_path):
    package = tmp_path / "elsewhere" / "helping"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("WORD = 'helped'\n")
    (tmp_path / "elsewhere" / "lone.py").write_text("WORD = 'alone'\n")
    job = script.run(
        "import helping, lone; print(helping.WORD, lone.WORD)",
        dependencies=[str(package), str(tmp_path / "elsewhere" / "lone.py")],
    )
    assert out(job) == b"helped alone\n"


@pytest.mark.law("C1")
@pytest.mark.parametrize(("first_line", "processes"), [("#!/bin/sh\n", 2), ("", None)])
def test_a_shell_script(script, out, first_line, processes):
    source = first_line + 'printf "%s|" "$PWD" "$SM_SOURCE_DIR" "$@"\n'
    job = script.run(
        {"train.sh": source}, entry_point="train.sh", processes=processes, hyperparameters={"name": "a  b;c"}
    )
    choice = {} if processes is None else {"rank": 1}
    folder, code, *arguments, rest = out(job, **choice).decode().split("|")
    assert folder == os.path.realpath(code)
    assert (arguments, rest) == (["--name", "a  b;c"], "")


@pytest.mark.law("C1")
@pytest.mark.parametrize("processes", [None, 2])
def test_a_package_is_installed_and_run_as_a_module(script, out, processes):
    files = {
        "setup.py": "import setuptools; setuptools.setup(name='law', version='1', py_modules=['train', 'part'])",
        "train.py": "import part, sys; print(part.WORD, __name__, sys.argv[1:])",
        "part.py": "WORD = 'installed'",
    }
    job = script.run(files, processes=processes, hyperparameters={"a": 1})
    choice = {} if processes is None else {"rank": 1}
    assert out(job, **choice) == b"installed __main__ ['-a', '1']\n"


@pytest.mark.law("C1")
def test_an_entry_point_in_a_subfolder(script, out):
    source = "import os; print(os.getcwd() == os.path.realpath(os.environ['SM_SOURCE_DIR']), __file__)"
    job = script.run({"deep/er/train.py": source}, entry_point="deep/er/train.py")
    assert out(job).startswith(b"True ")


@pytest.mark.law("C2")
def test_the_same_source_gives_the_same_bundle(script):
    files = {"train.py": "print('same')", "data.bin": bytes(1000)}
    first, second = script.estimator(files), script.estimator(files)
    os.utime(Path(str(second.source_dir)) / "train.py", (1, 1))
    assert first.plan().code == second.plan().code
    assert script.estimator({**files, "more": b""}).plan().code != first.plan().code


@pytest.mark.law("C2")
def test_the_same_source_is_uploaded_once(script, out, objects):
    files = {"train.py": "print('same')", "data.bin": bytes(1000)}
    location = f"{objects.uri}/code"
    first, second = (script.estimator(files, code_location=location) for _ in range(2))
    assert objects.all() == {}
    plan = first.plan()
    assert objects.all() == {}
    assert [out(each.fit(logs="none")) for each in (first, second)] == [b"same\n"] * 2
    (name,) = objects.all("code/")
    assert plan.code_uri == f"{location}/{name}"
    assert objects.all("code/")[name] == Path(plan.code).read_bytes()
    if objects.proxy is not None:
        assert len([request for request in objects.proxy.requests if request.method in ("PUT", "POST")]) == 1


@pytest.mark.law("C2")
def test_a_store_that_refuses_the_code_is_an_error_before_anything_starts(script, home, s3_objects):
    before = list(home.glob("jobs/*"))
    with pytest.raises(BackendError, match=r"could not be uploaded to s3://nobody-made-this/.*nothing was started"):
        script.run("print(1)", code_location="s3://nobody-made-this/code")
    assert list(home.glob("jobs/*")) == before


@pytest.mark.law("C1")
def test_code_that_a_job_description_names_in_a_store_is_fetched(script, out, objects, tmp_path):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        info = tarfile.TarInfo("train.py")
        info.size = len(b"print('fetched')")
        tar.addfile(info, io.BytesIO(b"print('fetched')"))
    objects.put({"job/source/sourcedir.tar.gz": archive.getvalue()})
    spec = script.estimator("print('not this one')").spec(code_uri=f"{objects.uri}/job/source/sourcedir.tar.gz")
    plan = backends.load(script.where["backend"]).plan(JobSpec.from_request(spec.to_request()))
    assert out(launch.run(plan, True, "none")) == b"fetched\n"


@pytest.mark.law("C3")
def test_code_that_is_not_in_its_store_is_refused(script, s3_objects):
    uri = f"{s3_objects.uri}/sourcedir.tar.gz"
    spec = script.estimator("print(1)").spec(code_uri=uri)
    with pytest.raises(InvalidArgument, match=f"{uri}, which cannot be fetched: .*does not exist"):
        backends.load(script.where["backend"]).plan(spec)


@pytest.mark.law("C3")
def test_a_missing_entry_point_is_refused_by_name(script, home):
    before = list(home.glob("jobs/*"))
    with pytest.raises(InvalidArgument, match=r"tran\.py.*did you mean 'train\.py'"):
        script.run({"train.py": "print(1)"}, entry_point="tran.py")
    assert list(home.glob("jobs/*")) == before


@pytest.mark.law("C3")
@pytest.mark.parametrize("name", ["../train.py", "/etc/passwd", "a b.py", "./train.py", ""])
def test_an_entry_point_outside_the_code_is_refused(script, name):
    with pytest.raises(InvalidArgument, match="entry_point"):
        script.run({"train.py": "print(1)"}, entry_point=name)


@pytest.mark.law("C3")
def test_a_missing_source_is_refused(script, tmp_path):
    with pytest.raises(InvalidArgument, match="source_dir"):
        script.run("print(1)", source_dir=str(tmp_path / "nowhere"))


@pytest.mark.law("C3")
@pytest.mark.parametrize("name", ["../escaped.py", "/tmp/escaped.py"])
def test_an_unsafe_archive_is_refused_and_nothing_runs(script, monkeypatch, tmp_path, name):
    archive = tmp_path / "unsafe.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for member, data in (("train.py", b"print('ran')"), (name, b"")):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    monkeypatch.setattr("estimator_sdk.estimator.launch.bundle", lambda source: archive)
    failed = script.fail("print('ran')")
    assert "escaped.py" in str(failed) and "refused" in str(failed)
    assert failed.verdict.host == "algo-1"
    assert not Path("/tmp/escaped.py").exists()


def wheel(name: str, body: str) -> bytes:
    """A wheel made by hand, so that no index is needed."""
    made = io.BytesIO()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}.py", body)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return made.getvalue()


@pytest.mark.law("C4")
def test_requirements_are_there_before_any_rank_starts(script, out):
    name = "law_requirement-1.0-py3-none-any.whl"
    files = {
        "train.py": "import law_requirement; print(law_requirement.WORD)",
        "requirements.txt": f"./{name}\n",
        name: wheel("law_requirement", "WORD = 'required'\n"),
    }
    job = script.run(files, hosts=2, processes=2)
    for host in ("algo-1", "algo-2"):
        assert set(out(job, host=host).splitlines()) == {b"required"}


@pytest.mark.law("C4")
def test_requirements_of_a_shell_script_are_installed_too(script, out):
    name = "law_requirement-1.0-py3-none-any.whl"
    files = {
        "train.sh": "python -c 'import law_requirement; print(law_requirement.WORD)'",
        "requirements.txt": f"./{name}\n",
        name: wheel("law_requirement", "WORD = 'required'\n"),
    }
    assert out(script.run(files, entry_point="train.sh")) == b"required\n"


@pytest.mark.law("C4")
def test_a_failing_install_fails_the_job_with_the_words_of_pip(script):
    files = {"train.py": "print('ran')", "requirements.txt": "./is-not-there-1.0-py3-none-any.whl\n"}
    failed = script.fail(files, hosts=2)
    assert failed.verdict.kind == "requirements"
    assert "is-not-there-1.0-py3-none-any.whl" in str(failed)
    assert "ERROR" in failed.verdict.detail
