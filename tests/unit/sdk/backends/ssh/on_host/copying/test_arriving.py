"""What hosts on other machines write, as it arrives in the job's folder."""

from estimator_container.failures.kind import Kind

from estimator_sdk.backends.ssh.on_host import words
from estimator_sdk.backends.ssh.on_host.copying.arriving import ArrivingFiles, end_of
from estimator_sdk.backends.ssh.on_host.copying.trees import piece
from estimator_sdk.values.home import JobFolder


def test_a_log_goes_on_after_what_the_supervisor_has_written_there(tmp_path):
    arriving = ArrivingFiles(JobFolder(tmp_path))
    log = tmp_path / "hosts" / "algo-1" / words.FRAMES
    log.parent.mkdir(parents=True)
    log.write_bytes(b"restored ")
    for offset, data in ((0, b"one "), (4, b"two ")):
        arriving.take("algo-1", list(piece(words.FRAMES, offset, data)))
    arriving.take("algo-2", list(piece(words.FRAMES, 0, b"other")))
    log.write_bytes(log.read_bytes() + b"failed ")
    arriving.take("algo-1", list(piece(words.FRAMES, 0, b"again")))
    assert log.read_bytes() == b"restored one two failed again"
    assert (tmp_path / "hosts" / "algo-2" / words.FRAMES).read_bytes() == b"other"


def test_a_host_that_has_left_what_cannot_be_read_has_not_done_well_and_says_what_that_is():
    assert end_of("algo-2", "0") == (0, None)
    code, found = end_of("algo-2", "0", "model/x: Permission denied")
    assert code != 0 and (found.kind, found.host) == (Kind.OUTPUTS, "algo-2")
    assert "model/x: Permission denied" in found.message
    assert end_of("algo-2", "7", "model/x: Permission denied") == (7, None)  # which has a reason of its own
