#!/usr/bin/env bash
# usage: run_fuzzers.sh BUILD_DIRECTORY SECONDS
# Runs every fuzz target (the programs fuzz_*) for that long, beginning with its checked-in corpus.
# What it finds stays in BUILD_DIRECTORY/corpus; a crash, a leak, 2 GB or 10 s on one input fail.
set -uo pipefail
cd "$(dirname "$0")/.."
directory=$1 seconds=$2
mapfile -t targets < <(find "$directory" -maxdepth 3 -type f -executable -name 'fuzz_*' | sort)
[[ ${#targets[@]} -gt 0 ]] || { echo "error: no fuzz target in $directory" >&2; exit 1; }
failures=0
for target in "${targets[@]}"; do
  name=$(basename "$target")
  found=$directory/corpus/$name
  seeds=fuzz/corpus/${name#fuzz_}
  mkdir -p "$found" "$directory/log"
  printf -- '-- %s for %s s ... ' "$name" "$seconds"
  corpora=("$found")
  [[ -d $seeds ]] && corpora+=("$seeds")
  if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$directory/$name-" "${corpora[@]}" </dev/null >"$directory/log/$name.txt" 2>&1; then
    echo "$(sed -n 's/^stat::number_of_executed_units: *//p' "$directory/log/$name.txt") inputs, no finding"
  else
    echo "FINDING"
    tail -n 40 "$directory/log/$name.txt"
    failures=$((failures + 1))
  fi
done
exit $((failures > 0))
