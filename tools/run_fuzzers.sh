#!/usr/bin/env bash
# usage: run_fuzzers.sh BUILD_DIRECTORY SECONDS [TARGET…]
# Runs every fuzz target (the programs fuzz_*), or those named, for that long each, as many at a time as there are
# cores, beginning with its checked-in corpus or the seeds that a script makes.
# New inputs stay in BUILD_DIRECTORY/corpus; a crash, a leak, 2 GB or 10 s on one input fail.
set -uo pipefail
cd "$(dirname "$0")/.."
directory=$1 seconds=$2
shift 2
if [[ $# -gt 0 ]]; then
  targets=("${@/#/$directory/fuzz/fuzz_}")
else
  mapfile -t targets < <(find "$directory" -maxdepth 3 -type f -executable -name 'fuzz_*' | sort)
fi
[[ ${#targets[@]} -gt 0 ]] || { echo "error: no fuzz target in $directory" >&2; exit 1; }
python3 fuzz/make_template_seeds.py "$directory/seeds/template" || exit 1
# Targets that open folders write them for each input: into memory where that is possible.
[[ -w /dev/shm ]] && export TMPDIR=/dev/shm
export directory seconds

run_target() {
  local name found log seeds
  name=$(basename "$1")
  found=$directory/corpus/$name
  log=$directory/log/$name.txt
  mkdir -p "$found" "$directory/log"
  local corpora=("$found")
  for seeds in "fuzz/corpus/${name#fuzz_}" "$directory/seeds/${name#fuzz_}"; do
    [[ -d $seeds ]] && corpora+=("$seeds")
  done
  if "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$directory/$name-" "${corpora[@]}" </dev/null >"$log" 2>&1; then
    echo "-- $name for $seconds s ... $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs, no finding"
  else
    echo "-- $name for $seconds s ... FINDING"
    tail -n 40 "$log"
    return 1
  fi
}
export -f run_target
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'run_target "$1"' _ '{}'
