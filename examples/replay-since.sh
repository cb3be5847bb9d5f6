#!/usr/bin/env bash
# Read a topic again from some time on: stop the readers, then
#
#   replay-since.sh GROUP TOPIC PT2H 'INC-4411: bad deploy'
#
# Waits until the group is empty, moves it back, and says how to take that back. Exit codes are kgroup's:
# 4 when the group is still active after the time allowed, 5 when some partitions could not be moved.
set -euo pipefail

group=$1 topic=$2 since=$3 reason=$4

kgroup reset-offsets "$group" --topic "$topic" --by-duration "$since"

answer=$(kgroup reset-offsets "$group" --topic "$topic" --by-duration "$since" \
    --wait-empty --timeout "${WAIT:-5m}" --reason "$reason" --execute --yes -o json)
entry=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["journal_id"])' <<<"$answer")

kgroup lag "$group" --by-topic
echo "to take it back, before the readers start: kgroup reset-offsets --undo $entry --execute"
