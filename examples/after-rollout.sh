#!/usr/bin/env bash
# The last step of a deployment: has the group settled, and is it well?
#
#   after-rollout.sh orders 12
#
# Exit code 7: not settled in time, with what blocks it; 8: settled, but something is wrong. Others are kgroup's.
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: after-rollout.sh GROUP MEMBERS" >&2
    exit 2
fi
group=$1 members=$2
# The group of exactly this name, whatever is in it: [*] is a star and no pattern.
group=${group//\[/[[]} group=${group//\*/[*]} group=${group//\?/[?]}

for condition in "members=$members" stable; do
    code=0
    kgroup wait --for "$condition" --stop-after "${WAIT:-2m}" --quiet -- "$group" >/dev/null || code=$?
    if [ "$code" -eq 7 ]; then
        kgroup doctor -- "$group" || true
    fi
    if [ "$code" -ne 0 ]; then
        exit "$code"
    fi
done
kgroup doctor -- "$group"
