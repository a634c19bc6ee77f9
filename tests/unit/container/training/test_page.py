"""Where a rank counts, and what its host reads of that."""

import os

from estimator_container.training.page import LAST, STEPS, StepCount


def test_the_host_reads_what_a_rank_has_written(host):
    page = host.open("3")
    page[STEPS], page[LAST] = 5, 7
    assert host.read() == [StepCount(3, os.getpid(), 5, 0, 0, 7, 0, 0)]


def test_a_rank_that_has_counted_nothing_is_not_there(host):
    assert host.open("3") is not None
    assert host.read() == []


def test_the_script_of_a_host_without_a_world_has_no_rank(host):
    host.open(None)[STEPS] = 1
    assert [count.rank for count in host.read()] == [None]


def test_one_process_counts_for_a_rank(host):
    first = host.open("3")
    assert host.open("3") is None
    del first
    assert host.open("3") is not None


def test_the_next_process_of_a_rank_counts_anew(host):
    page = host.open("3")
    page[STEPS] = 9
    del page
    host.open("3")[STEPS] = 1
    assert [count.steps for count in host.read()] == [1]


def test_where_no_host_reads_pages_there_is_none(host):
    host.pages.rmdir()
    assert host.open() is None
    host.folder_file.unlink()
    assert host.open() is None


def test_a_rank_that_is_not_a_number_has_no_page(host):
    assert host.open("../../elsewhere") is None


def test_what_others_leave_in_the_folder_is_passed_over(host):
    for name in ("steps-x", "steps-1", "vader_segment"):
        (host.pages / name).write_bytes(b"short")
    assert host.read() == []


def test_a_count_comes_to_another_host_as_it_was():
    for rank in (None, 0, 3):
        count = StepCount(rank, 7, 5, 105, 10, 20, 4, 5)
        assert StepCount.from_field(count.to_field()) == count
