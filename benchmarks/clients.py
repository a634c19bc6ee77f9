"""Clients of an object store, ours and one without anything around it: each is made ready to move a folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

BUCKET = "benchmark"
CONNECTIONS = 32

Run = Callable[[], object]
Ready = Callable[[Path, str], Run]
"""Makes ready to move a folder to a key prefix, or the other way round; what it returns does it."""


def raw_store() -> Any:  # noqa: ANN401 - obstore has no name for any of its stores
    from obstore.store import S3Store

    return S3Store(
        BUCKET,
        endpoint=os.environ["AWS_ENDPOINT_URL_S3"],
        region="us-east-1",
        client_options={"allow_http": True},
        virtual_hosted_style_request=False,
    )


def raw_up(folder: Path, prefix: str) -> Run:
    import obstore

    store = raw_store()

    def put() -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            puts = [pool.submit(obstore.put, store, f"{prefix}/{path.name}", path) for path in folder.iterdir()]
            for each in puts:
                each.result()

    return put


def raw_up_and_two_trips(folder: Path, prefix: str) -> Run:
    """What a publisher cannot do without, beside the bytes: two small requests, one before and one after."""
    import obstore

    store, put = raw_store(), raw_up(folder, prefix)

    def run() -> None:
        obstore.put(store, f"{prefix}.before", b"{}")
        put()
        obstore.put(store, f"{prefix}.after", b"{}")

    return run


def raw_down(folder: Path, prefix: str) -> Run:
    import obstore

    store = raw_store()

    def fetch(key: str) -> None:
        with (folder / key.rpartition("/")[2]).open("wb") as file:
            for chunk in obstore.get(store, key).stream(min_chunk_size=1 << 20):
                file.write(chunk)

    def get() -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            keys = [each["path"] for page in obstore.list(store, prefix) for each in page]
            list(pool.map(fetch, keys))

    return get


def raw_delete(_: Path, prefix: str) -> Run:
    import obstore

    store = raw_store()
    return lambda: obstore.delete(store, [each["path"] for page in obstore.list(store, prefix) for each in page])


def our_up(folder: Path, prefix: str) -> Run:
    from estimator_container.agents.checkpoints import restore
    from estimator_container.agents.checkpoints.publisher import Publisher
    from estimator_container.agents.watching.folder import WatchedFolder
    from estimator_container.storage import open_store

    store = open_store(f"s3://{BUCKET}/{prefix}")
    watched = WatchedFolder(str(folder))
    publisher = Publisher(store, restore.claim(store, "benchmark"), watched)
    publisher.begin_with(None, restore.NOTHING)

    def publish() -> None:
        state = watched.state({}, 10.0)
        assert state is not None
        publisher.publish(state)

    return publish


def our_down(folder: Path, prefix: str) -> Run:
    from estimator_container.agents.checkpoints import restore
    from estimator_container.storage import open_store

    store = open_store(f"s3://{BUCKET}/{prefix}")
    return lambda: restore.restore(store, str(folder))
