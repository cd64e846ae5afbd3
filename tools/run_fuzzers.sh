#!/usr/bin/env bash
# usage: run_fuzzers.sh BUILD_DIRECTORY SECONDS
# Runs every fuzz target (the programs fuzz_*) for that long, beginning with its checked-in corpus or the
# seeds that a script makes.
# What it finds stays in BUILD_DIRECTORY/corpus; a crash, a leak, 2 GB or 10 s on one input fail.
set -uo pipefail
cd "$(dirname "$0")/.."
directory=$1 seconds=$2
mapfile -t targets < <(find "$directory" -maxdepth 3 -type f -executable -name 'fuzz_*' | sort)
[[ ${#targets[@]} -gt 0 ]] || { echo "error: no fuzz target in $directory" >&2; exit 1; }
python3 fuzz/make_template_seeds.py "$directory/seeds/template" || exit 1
failures=0
for target in "${targets[@]}"; do
  name=$(basename "$target")
  found=$directory/corpus/$name
  mkdir -p "$found" "$directory/log"
  printf -- '-- %s for %s s ... ' "$name" "$seconds"
  corpora=("$found")
  for seeds in "fuzz/corpus/${name#fuzz_}" "$directory/seeds/${name#fuzz_}"; do
    [[ -d $seeds ]] && corpora+=("$seeds")
  done
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
