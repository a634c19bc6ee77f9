import pytest
from estimator_container.runtime import machine


def test_what_memory_holds_does_not_hang_and_what_another_program_answers_may():
    assert not machine.may_hang("/dev/shm/none")
    assert machine.may_hang("/proc/self")


LOCAL = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "fuse.sshfs", "cifs", "gpfs", "virtiofs", "of a later kernel"])
def test_a_type_that_is_not_known_to_be_local_may_hang(monkeypatch, kind):
    mounts = f"{LOCAL}30 22 0:50 / /ho\\040me rw shared:1 - {kind} server:/home rw\n"
    monkeypatch.setattr(machine, "kernel_file", lambda path: mounts)
    assert machine.may_hang("/ho me/of/a job") and machine.may_hang("/ho me")
    assert not machine.may_hang("/ho me2") and not machine.may_hang("/srv")


def test_the_deepest_mount_counts_and_of_several_at_a_place_the_last(monkeypatch):
    mounts = f"{LOCAL}30 22 0:50 / /home rw - nfs server:/home rw\n31 30 8:2 / /home/here rw - xfs /dev/sdb rw\n"
    monkeypatch.setattr(machine, "kernel_file", lambda path: mounts)
    assert machine.may_hang("/home/there") and not machine.may_hang("/home/here/a")
    over = f"{mounts}32 31 0:51 / /home/here rw - nfs server:/other rw\n"
    monkeypatch.setattr(machine, "kernel_file", lambda path: over)
    assert machine.may_hang("/home/here/a")


def test_a_place_of_which_nothing_is_known_counts_as_local(monkeypatch):
    monkeypatch.setattr(machine, "kernel_file", lambda path: "")
    assert not machine.may_hang("/home")
