#!/usr/bin/env bash
# For cron: post to a web address when a group waits longer than a limit, or when that cannot be told because its
# readers have partitions never committed; only then.
#
#   lag-alert.sh GROUP 5m https://hooks.example.org/lag
#
# GROUP may be a pattern, such as 'pay*'; '[*]' is the group called *.
# Ends with 8 after posting, with 1 when the post was not taken; a check that could not be made ends with its
# own code and posts nothing.
set -euo pipefail

if [ $# -ne 3 ]; then
    echo "usage: lag-alert.sh GROUP LIMIT URL" >&2
    exit 2
fi
group=$1 limit=$2 url=$3

code=0
report=$(kgroup lag --time --fail-above "$limit" -o json --quiet -- "$group" 2>/dev/null) || code=$?
case $code in
0) ;;
8)
    python3 -c '
import json, sys, urllib.request, urllib.error
report = json.load(sys.stdin)["data"]
verdict = report["verdict"]
why = {group_id: "over the limit" for group_id in verdict["over"]}
why |= {told["group_id"]: told["reason"] for told in verdict["unknown"]}
late = [g for g in report["groups"] if g["group_id"] in why]
said = ("group_id", "total_lag", "lag_at_least", "max_time_lag_ms")
body = json.dumps([{**{k: g[k] for k in said}, "why": why[g["group_id"]]} for g in late])
try:
    request = urllib.request.Request(sys.argv[1], body.encode(), {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=5).close()
except (OSError, ValueError) as error:
    sys.exit(f"{len(late)} groups are late, and {sys.argv[1]} was not told: {error}")
' "$url" <<<"$report" || exit 1
    exit 8
    ;;
*)
    printf 'lag of %q not known: kgroup ended with %s\n' "$group" "$code" >&2
    exit "$code"
    ;;
esac
