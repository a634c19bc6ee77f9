from estimator_container.storage.source import Buffers


def test_memory_is_used_again_once_nobody_holds_it():
    buffers = Buffers(8)
    first, second = buffers.take(8), buffers.take(3)
    first[:] = b"12345678"
    held = memoryview(first)[2:]  # as a client does that is still sending it
    assert second.obj is not first.obj
    memory = first.obj
    del first, second
    assert all(buffers.take(8).obj is not memory for _ in range(3))
    assert bytes(held) == b"345678"
    del held
    assert buffers.take(8).obj is memory


def test_a_view_is_as_long_as_was_asked_for():
    assert len(Buffers(8).take(3)) == 3
