"""The scripts that make a shell complete, and what a shell and concertino say to each other.

The shell gives the line up to the cursor, as it was typed, in COMP_LINE; the answer is one line for each proposal:

    plain⇥toy/leader⇥a description       part⇥groq/⇥…      (no blank behind it: more is to follow)
    file⇥⇥                               dir⇥⇥             (the shell completes names of files itself)

click's own scripts give words instead, which bash cuts at `=` and `:`; names of models hold both.
Invariant: a key press starts no program but concertino, and nothing that a name holds is run by the shell.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import Any

from click.shell_completion import CompletionItem, ShellComplete, add_completion_class, split_arg_string

from concertino.core.display_text import is_plain_name, one_line

_BASH = """\
%(complete_func)s() {
    local type value help
    COMPREPLY=()
    while IFS=$'\\t' read -r type value help; do
        case $type in
            plain) COMPREPLY+=("$value") ;;
            part) COMPREPLY+=("$value"); compopt -o nospace 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            dir) compopt -o dirnames 2>/dev/null ;;
        esac
    done < <(COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_BREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""
_ZSH = """\
#compdef %(prog_name)s
%(complete_func)s() {
    local type value help
    local -a plain part plain_shown part_shown
    while IFS=$'\\t' read -r type value help; do
        case $type in
            plain) plain+=("$value"); plain_shown+=("$value${help:+  -- $help}") ;;
            part) part+=("$value"); part_shown+=("$value${help:+  -- $help}") ;;
            file) _files ;;
            dir) _files -/ ;;
        esac
    done < <(COMP_LINE="${(j: :)words[1,CURRENT-1]} $PREFIX" %(complete_var)s=zsh_complete $words[1] 2>/dev/null)
    (( $#part )) && compadd -Q -S '' -l -V names -d part_shown -a part
    (( $#plain )) && compadd -Q -l -V names -d plain_shown -a plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""
_FISH = """\
function %(complete_func)s
    set -lx COMP_LINE (commandline -cp)
    set -lx %(complete_var)s fish_complete
    for line in (%(prog_name)s 2>/dev/null)
        set -l field (string split \\t -- $line)
        switch $field[1]
            case file
                __fish_complete_path (commandline -ct)
            case dir
                __fish_complete_directories (commandline -ct)
            case '*'
                printf '%%s\\t%%s\\n' $field[2] "$field[3]"
        end
    end
end
complete -c %(prog_name)s -f -a '(%(complete_func)s)'
"""


_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


class _Shell(ShellComplete):
    """A shell: how it gives a line, and takes proposals."""

    quotes = True
    """Whether it puts a proposal into the line as it is, so that special characters need quoting."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.word = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor's, and the cursor's."""
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        while words and _VARIABLE.match(words[0]):  # `NO_COLOR=1 concertino …`
            words.pop(0)
        open_word = bool(words) and not line[-1:].isspace()
        self.word = words[-1] if open_word else ""
        # Behind `--only=` click expects the option and the word apart.
        before = words[1:-1] if open_word else words[1:]
        if self.word.startswith("--") and "=" in self.word:
            option, _, self.word = self.word.partition("=")
            return [*before, option], self.word
        return before, self.word

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """One line of the answer."""
        value = str(item.value)
        # Nothing that could end the line, command the terminal or hide in the name.
        if not is_plain_name(value):
            return ""
        shown = self._cut(shlex.quote(value) if self.quotes and item.type in ("plain", "part") else value)
        return f"{item.type}\t{shown}\t{one_line(item.help or '', 72)}"

    def complete(self) -> str:
        """The whole answer."""
        return "\n".join(line for line in super().complete().split("\n") if line)

    def _cut(self, value: str) -> str:
        return value


@add_completion_class
class Bash(_Shell):
    """bash replaces what stands behind the last character at which it breaks words."""

    name = "bash"
    source_template = _BASH

    def _cut(self, value: str) -> str:
        breaks = os.environ.get("COMP_BREAKS", ":=")
        whole = self.word
        at = max((whole.rfind(sign) for sign in ":=@" if sign in breaks), default=-1)
        return value[at + 1 :] if value.startswith(whole[: at + 1]) else value


@add_completion_class
class Zsh(_Shell):
    """zsh."""

    name = "zsh"
    source_template = _ZSH


@add_completion_class
class Fish(_Shell):
    """fish quotes proposals itself."""

    name = "fish"
    source_template = _FISH
    quotes = False


SHELLS: dict[str, type[_Shell]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def script(shell: str) -> str:
    """The script that a shell reads once, at its start."""
    from .group import command_line

    return SHELLS[shell](command_line, {}, "concertino", "_CONCERTINO_COMPLETE").source()


def shell_of_user() -> str:
    """The shell that the user logs in with, if it is one of ours; else an empty text."""
    name = os.path.basename(os.environ.get("SHELL", ""))  # noqa: PTH119 (a name, no path)
    return name if name in SHELLS and sys.platform != "win32" else ""
