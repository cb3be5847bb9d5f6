#!/usr/bin/env bash
# Read a topic again from some time on: stop the readers, then
#
#   replay-since.sh GROUP TOPIC PT2H 'INC-4411: bad deploy'
#
# Waits until the group is empty, moves it back, and says how to take that back. Exit codes are kgroup's:
# 7 when the group is still active after the time allowed, 5 when some partitions could not be moved.
set -euo pipefail

if [ $# -ne 4 ]; then
    echo "usage: replay-since.sh GROUP TOPIC DURATION REASON" >&2
    exit 2
fi
group=$1 topic=$2 since=$3 reason=$4
# The group of exactly this name, whatever is in it: [*] is a star and no pattern.
group=${group//\[/[[]} group=${group//\*/[*]} group=${group//\?/[?]}

# Code 4: the group has members still, which is waited for below.
code=0
kgroup reset-offsets --topic "$topic" --by-duration "$since" -- "$group" || code=$?
case $code in 0 | 4) ;; *) exit "$code" ;; esac

code=0
answer=$(kgroup reset-offsets --topic "$topic" --by-duration "$since" --wait-empty --timeout "${WAIT:-5m}" \
    --reason "$reason" --execute --yes -o json -- "$group") || code=$?
entry=$(python3 -c '
import json, sys
told = sys.stdin.read().strip()
print((told and json.loads(told)["data"] or {}).get("journal_id") or "")
' <<<"$answer")

kgroup lag --by-topic -- "$group" || true
if [ -n "$entry" ]; then
    echo "to take it back, before the readers start: kgroup reset-offsets --undo $entry --execute"
fi
exit "$code"
