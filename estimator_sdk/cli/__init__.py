"""The command line `estimator`: a thin layer that builds a job, or asks one.

Each command is a line in `command_table.COMMANDS` and a module of its name in `commands/` or `commands/jobs/`, with two
functions:

- `add(parser)` adds the command's arguments to its own parser, a `parser.Parser`, which has `--json` and `--help`.
- `run(arguments) -> int` does the work and returns the exit code.

`run` writes its answer, and nothing else, to standard output through `answer.show(arguments, document, lines)`: the
document for `--json`, the lines for people. All else, such as warnings, goes to standard error.

It lets errors out: `main` writes each EstimatorError as `estimator COMMAND: SENTENCE` to standard error. The exit code
is then 2 for InvalidArgument and JobNotFound, with nothing started, and 1 for all others. A command that runs a job to
its end, as `execution.execute` does for a plan, returns the job's own exit code.

Of the commands only the one that was typed is imported, so a module here imports at its head what is quick, and
what a command needs besides inside its functions.
"""
