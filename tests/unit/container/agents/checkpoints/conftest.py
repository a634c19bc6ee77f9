import pytest
from estimator_container.agents.checkpoints.publisher import Publisher
from estimator_container.agents.checkpoints.restore import claim
from estimator_container.storage import open_store


@pytest.fixture
def store(tmp_path):
    return open_store(f"file://{tmp_path / 'store'}")


class Attempt:
    """One attempt's publisher over a folder of its own."""

    def __init__(self, store, watched, job: str = "job", kept: int = 3) -> None:
        self.watched = watched
        self.claim = claim(store, job)
        self.publisher = Publisher(store, self.claim, self.watched.folder, kept)

    def begin(self, restored):
        self.publisher.begin_with(restored.manifest, restored.base)
        return self

    def publish(self, **files: str):
        """Write files, publish what there is then, and tidy up."""
        for name, content in files.items():
            self.watched.write(name, content)
        state = self.watched.state(self.publisher.stamps)
        assert self.publisher.is_news(state)
        published = self.publisher.publish(state)
        self.publisher.clean_up()
        return published


@pytest.fixture
def new_attempt(store, watch, tmp_path):
    def new(**options):
        number = len(list(tmp_path.glob("attempt-*")))
        return Attempt(store, watch(tmp_path / f"attempt-{number}"), **options)

    return new
