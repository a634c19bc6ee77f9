"""What a host finds below its base directory."""

import stat

from estimator_sdk.backends.supervised.supervisor.base_directory import make_mount_point


def test_what_a_file_is_mounted_over_is_an_empty_file_of_this_user_alone(tmp_path):
    place = tmp_path / "train" / "digits.csv"
    make_mount_point(place, is_folder=False)
    assert place.read_bytes() == b""
    assert [stat.S_IMODE(path.stat().st_mode) for path in (place, place.parent)] == [0o600, 0o700]
