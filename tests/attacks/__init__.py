"""Attacks from outside, and what must hold against them: one file a surface, each case a few lines to extend.

`strangers` other users of the machine; `network` whoever can reach a host's ports; `archives` whoever wrote one;
`names`, `arguments`, `job_files` what a user or a generated file hands over; `state` the folders of jobs and who
signals whom; `outputs` what a script leaves; `streams` what it writes. What is defended, and what is not, is in
`docs/security.md`.
"""
