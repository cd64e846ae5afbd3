#!/usr/bin/env bash
# usage: venv.sh NAME
# Makes or updates a cached Python environment and prints the path of its interpreter, nothing else,
# on standard output. NAME is `pip` (no packages), `light`, `oracles`, `clients` or `lint`; the packages
# are those of tools/requirements-NAME.txt, installed again when that file or the Python version changes.
set -euo pipefail
name=$1
here=$(cd "$(dirname "$0")" && pwd)
requirements=$here/requirements-$name.txt
cache=${XDG_CACHE_HOME:-$HOME/.cache}/limpid
directory=$cache/venv-$name
python=$directory/bin/python
stamp=$directory/limpid-requirements
mkdir -p "$cache"
exec 9>"$cache/venv-$name.lock"
command -v flock >/dev/null && flock 9

base=${PYTHON:-python3}
command -v "$base" >/dev/null || { echo "error: no $base; run 'make install-deps'" >&2; exit 1; }
if [[ ! -x $python ]] || ! "$python" -c '' 2>/dev/null; then
  rm -rf "$directory"
  if ! "$base" -m venv "$directory" >"$cache/venv-$name.log" 2>&1; then
    cat "$cache/venv-$name.log" >&2
    echo "error: $base cannot make a virtual environment; on Debian install python3-venv" >&2
    exit 1
  fi
fi

wanted=$("$python" -c 'import sys; print(sys.version)' && cat "$requirements" 2>/dev/null || true)
if [[ ! -f $stamp ]] || [[ $(<"$stamp") != "$wanted" ]]; then
  if [[ -f $requirements ]]; then
    STEP_BRIEF=1 "$here/step.sh" "$cache/venv-$name.log" "installing $(grep -vcE '^(#|$)' "$requirements") Python packages in $directory" \
      "$python" -m pip install --disable-pip-version-check --no-input -q -r "$requirements" >&2
  fi
  echo "$wanted" >"$stamp"
fi
echo "$python"
