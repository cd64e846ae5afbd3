#!/usr/bin/env bash
# usage: build.sh PRESET [--target T]... [-- CMAKE_OPTION...]
# Configures and builds one preset of CMakePresets.json in two lines of output.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
build_options=()
while [[ $# -gt 0 && $1 != -- ]]; do
  build_options+=("$1")
  shift
done
[[ $# -gt 0 ]] && shift
configure_options=("$@")
if command -v ccache >/dev/null; then
  configure_options+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
else
  configure_options+=(-DLIMPID_PRECOMPILE=ON)
fi

tools/step.sh "build/$preset/log/configure.txt" "configuring build/$preset" \
  cmake --preset "$preset" "${configure_options[@]}"
if [[ -t 1 && -z ${CI:-} ]]; then
  # On a terminal ninja keeps its own single line: [12/80] Building ...
  echo "-- building build/$preset"
  cmake --build --preset "$preset" "${build_options[@]}" </dev/null
else
  tools/step.sh "build/$preset/log/build.txt" "building build/$preset" \
    cmake --build --preset "$preset" "${build_options[@]}"
fi
