#!/usr/bin/env bash
# usage: install_deps.sh [--list] SECTION...
# Installs the Debian packages of these sections of apt-packages.txt, only those that are missing.
# With --list, prints their names and installs nothing.
# Needs nothing but bash and apt; asks nothing; leaves standard input to the caller.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

packages_of() {
  local wanted=" $* " section="" line
  while read -r line; do
    case "$line" in
      "" | "#"*) ;;
      "["*"]") section=${line:1:-1} ;;
      *) [[ $wanted == *" $section "* ]] && echo "$line" ;;
    esac
  done <"$here/apt-packages.txt"
  return 0
}

is_installed() { [[ $(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

if [[ ${1:-} == --list ]]; then
  packages_of "${@:2}"
  exit 0
fi
mapfile -t wanted < <(packages_of "$@")
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "-- no apt on this machine: the equivalents of these must be there: ${wanted[*]}" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "error: these packages are missing, and there is neither root nor sudo to install them:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
  sudo -n true 2>/dev/null || sudo -v  # asks for a password once, on the terminal, before the quiet part
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@" \
    </dev/null >>"$log" 2>&1
}
lists_know_all() {
  local package
  for package in "${missing[@]}"; do
    apt-cache show "$package" </dev/null >/dev/null 2>&1 || return 1
  done
}
install_missing() { apt_get install --no-install-recommends "${missing[@]}"; }

echo "-- installing ${#missing[@]} Debian packages: ${missing[*]}"
lists_know_all || apt_get update || true
if ! install_missing; then
  # Lists older than the mirror name files that are gone: renew them, once.
  if ! { apt_get update && install_missing; }; then
    tail -n 30 "$log" >&2
    echo "error: apt could not install ${missing[*]}" >&2
    exit 1
  fi
fi
