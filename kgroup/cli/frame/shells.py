"""Completion in bash, zsh and fish: the script that each shell loads, and the answers it asks kgroup for.

A script passes the line typed so far and takes names, never code. zsh and fish quote what they insert by
themselves; bash does not, and replaces only what follows its last break, such as the : of HOST:PORT.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kgroup.cli.click import CompletionItem, completed
from kgroup.cli.env.escaping import clean
from kgroup.cli.frame.typed_words import FISH, POSIX, Word, inserted, words

if TYPE_CHECKING:
    from typer.core import TyperGroup

Expand: TypeAlias = Callable[[Sequence[str]], list[str]]
_BASH = r"""_kgroup_completion() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <(_KGROUP_COMPLETE=bash "$1" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    # A value follows the =; macOS's bash has no compopt.
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}

complete -o default -F _kgroup_completion kgroup
"""
_ZSH = r"""#compdef kgroup

_kgroup() {
    local -a plain open shown_plain shown_open
    local line="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" word shown
    for word shown in "${(0@)$(_KGROUP_COMPLETE=zsh kgroup "$line" 2>/dev/null)}"; do
        if [[ $word == *= ]]; then
            open+=("$word") shown_open+=("$shown")
        elif [[ -n $word ]]; then
            plain+=("$word") shown_plain+=("$shown")
        fi
    done
    if (( $#plain + $#open == 0 )); then
        _files
        return
    fi
    compadd -d shown_open -S '' -a open
    compadd -d shown_plain -a plain
}

if [[ $funcstack[1] == _kgroup ]]; then
    _kgroup "$@"
else
    compdef _kgroup kgroup
fi
"""
_FISH = r"""function __kgroup_complete
    set -l line (commandline -cp | string collect)
    set -l found (_KGROUP_COMPLETE=fish command kgroup "$line" 2>/dev/null | string split0)
    if test (count $found) -gt 0
        printf '%s\0' $found | string split0
    else
        __fish_complete_path (commandline -ct)
    end
end

complete -c kgroup -f -a '(__kgroup_complete)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def answer(root: "TyperGroup", shell: str, asked: Sequence[str], expand: Expand) -> None:
    """Print what completes the line `asked`, in the form that the script of this shell reads.

    `expand` is what a command line passes through before it is parsed.
    """
    line, *more = (
        word.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") for word in asked
    )
    typed = words(line, FISH if shell == "fish" else POSIX)
    while len(typed) > 1 and re.match(r"\w+=", typed[0].raw):
        # fish passes what is put into the environment, too.
        del typed[0]
    offered = [item for item in _offered(root, typed, expand) if _can_be_passed(item.value)]
    if shell == "bash":
        lines = _for_bash(typed[-1], more[0] if more else typed[-1].raw, [item.value for item in offered])
        text = "".join(f"{word}\n" for word in lines)
    else:
        text = "".join(f"{record}\0" for record in (_for_zsh if shell == "zsh" else _for_fish)(offered))
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))


def _offered(root: "TyperGroup", typed: Sequence[Word], expand: Expand) -> Iterator[CompletionItem]:
    """Yield what may stand in place of the last word, whole."""
    *args, last = expand([word.text for word in typed[1:]]) or [""]
    kind, begun, items = completed(root, args, last)
    front = last[: len(last) - len(begun)]
    for item in items:
        # Such a name would be an option: --execute may be the id of a group.
        if kind != "argument" or not item.value.startswith("-") or "--" in args:
            yield CompletionItem(front + item.value, help=item.help)


def _can_be_passed(word: str) -> bool:
    """Return whether a program can get this word at all."""
    try:
        return b"\0" not in word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _for_bash(last: Word, replaced: str, offered: Iterable[str]) -> Iterator[str]:
    """Yield the words quoted, without what bash keeps of the last one: it replaces `replaced` only.

    Readline takes away the quote before `replaced` where the replacement begins with the same one.
    """
    kept = last.raw.removesuffix(replaced)
    (state,) = words(kept, POSIX)
    lead = kept[-1:] if kept[-1:] in ("'", '"') else ""
    if len(kept) + len(replaced) != len(last.raw) or lead != (state.quote[-1:] if lead else ""):
        # Readline and bash differ about the quotes of this word.
        return
    for word in offered:
        if word.startswith(state.text):
            yield lead + inserted(word[len(state.text) :], state.quote)


def _for_zsh(items: Sequence[CompletionItem]) -> Iterator[str]:
    """Yield each word, then how the list of choices shows it."""
    width = max((len(clean(item.value)) for item in items), default=0)
    for item in items:
        yield item.value
        yield f"{clean(item.value):<{width}}  -- {item.help}" if item.help else clean(item.value)


def _for_fish(items: Iterable[CompletionItem]) -> Iterator[str]:
    """Yield each word with its help after a tab.

    fish has no form for a word that holds a tab, and reads a ~ in front as somebody's home.
    """
    for item in items:
        if "\t" not in item.value and not item.value.startswith("~"):
            yield f"{item.value}\t{' '.join(item.help.split())}" if item.help else item.value
