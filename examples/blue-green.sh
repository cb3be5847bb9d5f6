#!/usr/bin/env bash
# Start a new group where an old one is, with a way back: stop the old group's readers, then
#
#   blue-green.sh orders orders-v2 && start the new readers
#
# Keeps an export of both groups' offsets as they were before; of the new one only if it was there. An export that
# is there already is not overwritten. Exit code 4: the new group has members; 7: the old one still has.
set -euo pipefail
set -o noclobber

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    echo "usage: blue-green.sh FROM TO [FOLDER]" >&2
    exit 2
fi
from=$1 to=$2 folder=${3:-.}

# The group of exactly this name, whatever is in it: [*] is a star and no pattern.
named() {
    local name=${1//\[/[[]}
    name=${name//\*/[*]}
    printf '%s' "${name//\?/[?]}"
}
file_of() {
    local name=${1//%/%25}
    printf '%s/%s.json' "$folder" "${name//\//%2F}"
}

kgroup wait --for empty --stop-after "${WAIT:-5m}" --quiet -- "$(named "$from")" >/dev/null
kgroup offsets export -o json -- "$(named "$from")" >"$(file_of "$from")"
found=0
kgroup offsets export -o json -- "$(named "$to")" 2>/dev/null >"$(file_of "$to")" || found=$?
if [ "$found" -eq 3 ]; then
    rm -- "$(file_of "$to")" # a new group: nothing to keep
elif [ "$found" -ne 0 ]; then
    printf 'blue-green: the offsets of %q cannot be kept, so nothing is changed\n' "$to" >&2
    exit "$found"
fi
code=0
kgroup offsets clone --execute --yes -- "$from" "$to" || code=$?
if [ "$code" -eq 4 ]; then
    rm -f -- "$(file_of "$from")" "$(file_of "$to")" # refused: nothing was changed
fi
if [ "$code" -ne 0 ]; then
    exit "$code"
fi
before=$(kgroup offsets export -o csv -- "$(named "$from")")
after=$(kgroup offsets export -o csv -- "$(named "$to")")
diff <(printf '%s\n' "$before") <(printf '%s\n' "$after")
printf '%q begins where %q ended; kgroup reset-offsets %q --undo LAST --execute takes it back\n' \
    "$to" "$from" "$(named "$to")"
