#!/usr/bin/env bash
# usage: run_tests.sh PRESET CTEST_OPTION...
# Runs the tests of build/PRESET: prints failures as they come, then what was skipped and why, and
# ctest's closing line last. Exits as ctest does; no test at all is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
directory=build/$preset
jobs=${LIMPID_TEST_JOBS:-$(nproc)}
results=$PWD/$directory/ctest.xml
rm -f "$results"
if [[ -t 1 ]]; then
  progress=(--progress)
else
  progress=(--quiet)
fi
echo "-- testing $directory"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/lsan_suppressions.txt:print_suppressions=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
ctest --test-dir "$directory" --output-on-failure --no-tests=error -j "$jobs" --output-junit "$results" \
  --test-output-size-passed 100000 --test-output-size-failed 1000000 \
  "${progress[@]}" "$@" </dev/null
status=$?
python3 tools/report_tests.py "$results" || status=1
exit $status
