"""Why a job is slow: where the time of its steps goes, rank by rank, and what follows from that.

    step_records.py   what the ranks have told of their steps, from the job's log
    shares.py         that as shares of a step
    machine_load.py   what the hosts had to do meanwhile, from telemetry
    causes.py         what is to blame, and what is not for want of evidence
    advice.py         what to try
    diagnosis.py      all of it about one job
    words.py          as a screen shows it
    picture.py        as bars in SVG
    input_look.py     what the ranks were seen to do while they waited for input
    trials.py         advice that can be tried, and what it should gain
    comparison.py     what follows where a script was run several times, with something different

Users reach it by `Job.diagnose()` and `estimator doctor`; `docs/doctor.md` is about it.
"""
