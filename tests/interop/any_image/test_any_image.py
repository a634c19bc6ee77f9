"""Jobs in images that are not ours: the toolkit is brought to them, and what they lack is said before the start."""

from __future__ import annotations

import errno
import json
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from docker import APIClient

from estimator_sdk import Estimator, InvalidArgument
from estimator_sdk.backends.docker import engine
from tests.interop.another_user import another_user

from . import images

MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
TOOLKIT = "/opt/estimator-toolkit/estimator_container/__init__.py"


@pytest.fixture(autouse=True)
def jobs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATOR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def plain(image: str) -> Iterator[str]:
    with images.built(images.PLAIN) as name:
        yield name


def estimator(tmp_path: Path, source: str, image_uri: str, **arguments: object) -> Estimator:
    script = tmp_path / "train.py"
    script.write_text(source)
    return Estimator(entry_point=script, image_uri=image_uri, **arguments)


def said(job) -> list[str]:
    return [line.data.decode().rstrip("\n") for line in job.logs(stream="stdout")]


def test_a_world_runs_in_an_image_that_has_nothing_of_ours(tmp_path, plain):
    source = """
import json, os
from mpi4py import MPI
import estimator_container
from estimator_container import metrics

metrics.log(loss=0.5)
try:
    error = open(estimator_container.__file__, "a")
except OSError as refused:
    error = refused.errno
is_compiled = os.path.exists(estimator_container.__cached__)
own = os.environ["FROM_ENTRYPOINT"], os.environ["COLOUR"], os.environ["SM_CURRENT_HOST"]
print(json.dumps([MPI.COMM_WORLD.allreduce(1), estimator_container.__file__, error, is_compiled, *own]))
"""
    colour = {"COLOUR": "blue", "PYTHONPATH": "/nowhere"}
    job = estimator(tmp_path, source, plain, instance_count=2, distribution=MPI, environment=colour).fit(logs="none")
    seen = [json.loads(line) for line in said(job)]
    same = [4, TOOLKIT, errno.EROFS, True, "yes", "blue"]
    assert sorted(seen) == [[*same, "algo-1"]] * 2 + [[*same, "algo-2"]] * 2


def test_the_sdks_toolkit_runs_in_an_image_with_an_older_one(tmp_path, image):
    (tmp_path / "show.py").write_text("import estimator_container; print(estimator_container.__file__)")
    with images.built(images.WITH_AN_OLDER_TOOLKIT) as name:
        job = Estimator(command=["python", "show.py"], source_dir=tmp_path, image_uri=name).fit(logs="none")
        assert said(job) == [TOOLKIT]
        assert "in the place of the image's ENTRYPOINT" in job.folder.joinpath("plan.txt").read_text()


def test_a_user_without_rights_looks_into_an_image_and_trains_in_it(plain):
    script = "import os; open(os.environ['SM_MODEL_DIR'] + '/weights', 'w').write(str(os.getuid()))"
    client = """
import sys
from estimator_sdk import Estimator
job = Estimator(entry_point=sys.argv[1], image_uri=sys.argv[2]).fit(logs="none")
assert (job.download("model") / "weights").read_text() == sys.argv[3]
"""
    with another_user() as user:
        (user.folder / "train.py").write_text(script)
        user.run(client, str(user.folder / "train.py"), plain, str(user.uid))
        assert [path for path in user.left() if path.lstat().st_uid != user.uid] == []


def test_an_image_is_looked_into_once(tmp_path, image):
    client, begun = engine.connect(), int(time.time())
    with images.built(f"{images.PLAIN}\nLABEL number={uuid.uuid4()}") as name:
        for _ in range(2):
            plan = estimator(tmp_path, "", name).plan()
        assert (Path(plan.toolkit) / "estimator_container" / "train.py").exists()
        # With those of a job later, for the engine tells nothing of what has not ended yet.
        chosen = {"type": "container", "event": "start", "image": client.images.get(name).id}
        looks = list(client.events(since=begun, until=int(time.time()) + 1, filters=chosen, decode=True))
        assert len(looks) == 1
        assert client.containers.list(all=True, filters={"ancestor": name}) == []


def test_an_engine_that_is_slow_to_tell_of_the_end_of_a_look_says_nothing_of_the_image(tmp_path, plain, monkeypatch):
    tell = APIClient.wait

    def tell_late(self, container, timeout):
        tell(self, container, timeout)
        raise requests.ReadTimeout("Read timed out. (read timeout=60)")

    monkeypatch.setattr(APIClient, "wait", tell_late)
    plan = estimator(tmp_path, "", plain).plan()
    assert plan.toolkit is not None and plan.keeps_entrypoint


def test_what_an_image_lacks_is_said_before_anything_trains(tmp_path, image):
    def refused(source: str, name: str, **arguments: object) -> str:
        with pytest.raises(InvalidArgument) as raised:
            estimator(tmp_path, source, name, **arguments).fit()
        assert not (tmp_path / "home" / "jobs").exists()
        assert f"image_uri '{name}' " in str(raised.value) and "\n" not in str(raised.value)
        return str(raised.value)

    with images.built(images.WITHOUT_MPI) as name:
        assert "cannot run an MPI world: Open MPI's mpirun is neither" in refused("", name, distribution=MPI)
        assert "has no mpi4py, which train.py imports; add it to" in refused("from mpi4py import MPI\n", name)
        assert estimator(tmp_path, "", name).plan().toolkit is not None
    with images.built(images.WITHOUT_ANYTHING_TO_RUN) as name:
        assert "has no python3 on its PATH, nor a `train` program; add Python 3.9" in refused("", name)
        with pytest.raises(InvalidArgument, match="has neither a `train` program on its PATH nor an ENTRYPOINT, so"):
            Estimator(image_uri=name).fit()
        assert not (tmp_path / "home" / "jobs").exists()
    with images.without_anything() as name:
        assert "has no python3 on its PATH, nor a `train` program; add Python 3.9 or newer" in refused("", name)
