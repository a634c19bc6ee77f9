"""`estimator completion bash|zsh`: print what makes a shell complete commands, options and names of jobs."""

from __future__ import annotations

from argparse import Namespace

from .. import answer
from ..parser import Parser

# The shell's own completion of files comes where `estimator complete` has nothing to say.
_SCRIPTS = {
    "bash": """\
_estimator() {
  local IFS=$'\\n'
  COMPREPLY=($(estimator complete -- "$COMP_CWORD" "${COMP_WORDS[@]:1}" 2>/dev/null))
}
complete -o default -F _estimator estimator""",
    "zsh": """\
#compdef estimator
_estimator() {
  local -a found
  found=("${(@f)$(estimator complete -- $((CURRENT - 1)) "${(@)words[2,-1]}" 2>/dev/null)}")
  if [[ -n "${found[*]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _estimator estimator""",
}


def add(parser: Parser) -> None:
    how = 'add eval "$(estimator completion bash)" to ~/.bashrc, or the same with zsh to ~/.zshrc'
    parser.add_argument("shell", choices=sorted(_SCRIPTS), help=how)


def run(arguments: Namespace) -> int:
    script = _SCRIPTS[arguments.shell]
    answer.show(arguments, {"shell": arguments.shell, "script": script}, [script])
    return 0
