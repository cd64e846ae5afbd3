#!/usr/bin/env bash
# usage: lint.sh [FILE.cpp]...
# Everything that must be clean to land, over the tree or, for clang-tidy, over these files only.
# Needs build/dev (its compile_commands.json and kernel objects).
set -uo pipefail
cd "$(dirname "$0")/.."
status=0
check() {
  tools/step.sh "build/dev/log/lint-${1// /-}.txt" "$@" || status=1
}
ruff() { local python; python=$(tools/venv.sh lint) && "$python" -m ruff "$@"; }
markdown() { local python; python=$(tools/venv.sh lint) && git ls-files -- '*.md' | xargs -r "$python" -m mdformat "$@"; }
format() { git ls-files -- '*.h' '*.hpp' '*.cpp' '*.js' | xargs -r clang-format --dry-run -Werror; }
export -f ruff format markdown

check "layers" python3 tools/check_layers.py
check "isa symbols" python3 tools/check_isa_symbols.py build/dev
check "clang-format" bash -c format
check "ruff format" bash -c 'ruff format --check -q .'
check "ruff" bash -c 'ruff check -q .'
check "mdformat" bash -c 'markdown --check'
check "clang-tidy" python3 tools/run_tidy.py build/dev "$@"
exit $status
