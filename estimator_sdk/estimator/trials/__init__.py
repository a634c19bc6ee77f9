"""Running a script several times for a while, each time with something different, to learn why it is slow.

    window.py      one such run: how fast its steps are
    comparing.py   which runs there are, by turns, and what they give

What follows from the rates is said by `job.diagnosis`; `estimator doctor run` starts it.
"""
