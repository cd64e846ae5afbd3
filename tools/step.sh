#!/usr/bin/env bash
# usage: step.sh LOG TEXT COMMAND...
# Runs a command as one line of output: the text, then how long it took. What the command itself
# says goes to LOG; when the command fails, its errors and its last lines are shown, with STEP_BRIEF=1 only the
# last line. Exits as the command does.
set -uo pipefail
log=$1 text=$2
shift 2
mkdir -p "$(dirname "$log")"
printf -- '-- %s ... ' "$text"
start=$SECONDS
"$@" </dev/null >"$log" 2>&1
status=$?
if [[ $status -eq 0 ]]; then
  echo "$((SECONDS - start)) s"
else
  echo "failed"
  [[ ${STEP_BRIEF:-} ]] || grep -n -m 20 -E 'error|FAILED|Error' "$log" | cut -c1-300 >&2
  tail -n "${STEP_BRIEF:-40}" "$log" >&2
  echo "error: '$text' failed with status $status; all of it is in $log" >&2
fi
exit $status
