#!/usr/bin/env bash
# Delete the groups of a name pattern that wrote nothing for a while, with an export of their offsets kept.
#
#   delete-stale-groups.sh 'test-*' 7d /var/backups/kgroup
#
# Exit code 0: none left; 3: no group has such a name; 5: some could not be deleted, the others are gone.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: delete-stale-groups.sh GLOB AGE FOLDER" >&2
    exit 2
fi
glob=$1 age=$2 folder=$3

file="$folder/deleted-$(date -u +%Y%m%dT%H%M%SZ)-$$.json"
code=0
# One command looks and deletes: names are never read back by the shell.
kgroup delete --stale-for "$age" --export "$file" --execute --yes -- "$glob" || code=$?
if [ -e "$file" ]; then
    printf 'back again: kgroup delete --restore %q --execute\n' "$file"
fi
exit "$code"
