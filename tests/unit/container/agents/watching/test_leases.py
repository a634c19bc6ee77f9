from estimator_container.agents.watching import leases


def test_a_file_that_is_read_has_no_writer(tmp_path):
    (tmp_path / "model").write_text("x")
    with (tmp_path / "model").open():
        assert not leases.has_writer(str(tmp_path / "model"))
    with (tmp_path / "model").open("a"):
        assert leases.has_writer(str(tmp_path / "model"))


def test_leases_are_tried_where_the_folder_is(tmp_path, monkeypatch):
    assert leases.leases_work(str(tmp_path))
    monkeypatch.setattr(leases, "has_writer", lambda path: False)  # as a file system that grants each of them
    assert not leases.leases_work(str(tmp_path))
    assert not leases.leases_work(str(tmp_path / "missing"))
    assert list(tmp_path.iterdir()) == []
