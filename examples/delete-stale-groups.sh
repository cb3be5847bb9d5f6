#!/usr/bin/env bash
# Delete the groups of a name pattern that wrote nothing for a while, each with an export kept.
#
#   delete-stale-groups.sh 'test-*' 7d /var/backups/kgroup
#
# Exit code 0: none left; 5: some could not be deleted, the others are gone.
set -euo pipefail

glob=$1 age=$2 folder=$3

stale=$(kgroup delete "$glob" --stale-for "$age" -o name)
if [ -z "$stale" ]; then
    echo "nothing is stale"
    exit 0
fi
file="$folder/deleted-$(date -u +%Y%m%dT%H%M%SZ).json"
# shellcheck disable=SC2086 -- one argument a group
kgroup delete $stale --export "$file" --execute --yes
echo "back again: kgroup delete --restore $file --execute"
