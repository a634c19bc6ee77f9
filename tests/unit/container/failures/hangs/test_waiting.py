from estimator_container.failures.hangs.waiting import parse, place_of
from estimator_container.ranks import script_runner

DUMP = f"""Thread 0x00007f01 (most recent call first):
  File "/opt/ml/code/train.py", line 9 in load
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f02 (most recent call first):
  File "/opt/ml/code/train.py", line 20 in <module>
  File "{script_runner.__file__}", line 5 in run
"""


def test_the_thread_of_the_script_comes_first_and_each_other_has_a_heading():
    found = parse(DUMP, "/opt/ml/code")
    assert found.text.splitlines() == [
        '  File "train.py", line 20 in <module>',
        "  in another thread:",
        '  File "train.py", line 9 in load',
        '  File "/usr/lib/python3.11/threading.py", line 982 in run',
    ]
    assert (found.others, place_of(found.text)) == (1, "train.py, line 20 in <module>")
