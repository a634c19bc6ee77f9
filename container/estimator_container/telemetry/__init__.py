"""What a host measures of itself and its ranks, and the values that scripts log: measured, coded, kept in files.

metric_table.py     the names, units and precision of all that is measured
measure.py          the program that measures, one a host, beside the ranks
machine_load.py     what it reads of the host
rank_load.py        what it reads of each rank's processes
gpu_load.py         what it reads of GPUs
blocks.py           rows of whole numbers as few bytes
history.py          the files of these rows, fine for the newest time and coarse for all, and reading them
recording.py        writing them
logged.py           the files of the values that scripts log
for_scripts/        what a script imports as `estimator_container.metrics`
"""
