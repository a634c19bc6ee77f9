"""What a host finds below its base directory."""

import stat
from pathlib import Path
from types import SimpleNamespace

from estimator_container.contract.names import Layout

from estimator_sdk.backends.supervised.supervisor import base_directory
from estimator_sdk.backends.supervised.supervisor.base_directory import make_mount_point


def test_what_a_file_is_mounted_over_is_an_empty_file_of_this_user_alone(tmp_path):
    place = tmp_path / "train" / "digits.csv"
    make_mount_point(place, is_folder=False)
    assert place.read_bytes() == b""
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place, place.parent)] == [0o600, 0o700]


def test_what_a_host_left_that_never_began_is_replaced(tmp_path, monkeypatch):
    layout = Layout(str(tmp_path))
    for folder in (layout.config, layout.data):
        Path(folder).mkdir(parents=True)
    (source := tmp_path / "digits.csv").touch()
    channels = [SimpleNamespace(name=name, is_in_place=True) for name in ("train", "test")]
    places = {"train": source, "test": tmp_path}
    monkeypatch.setattr(base_directory.channel_places, "place", lambda channel, *_: places[channel.name])
    for secret in (b"one", b"another"):
        base_directory.write_secret(layout, secret)
        base_directory.link_channels(SimpleNamespace(channels=channels), None, "algo-1", Path(layout.data))
    assert Path(layout.world_secret).read_bytes() == b"another"
    assert Path(layout.data, "train", "digits.csv").samefile(source) and Path(layout.data, "test").samefile(tmp_path)
