#!/usr/bin/env bash
# usage: sysroot.sh ARCHITECTURE
# Unpacks the libraries that Limpid builds against, for another Debian architecture (arm64), into a folder
# of the cache, and prints the path of the folder, nothing else, on standard output. The libraries are the
# -dev packages of apt-packages.txt and all that these depend on. Uses this machine's list of mirrors with a
# state of apt's own, so no package of this machine changes and root is not needed.
set -euo pipefail
architecture=$1
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/limpid
root=$cache/sysroot-$architecture
apt=$cache/apt-$architecture
mkdir -p "$cache"
exec 9>"$root.lock"
flock 9

mapfile -t packages < <("$here/install_deps.sh" --list build test | grep -e '-dev$')
wanted=${packages[*]}
if [[ -f $root/limpid-packages && $(<"$root/limpid-packages") == "$wanted" ]]; then
  echo "$root"
  exit 0
fi

apt_get() {
  apt-get -q -y -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture" \
    -o "Dir::State=$apt" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt" "$@"
}
unpack() {
  rm -rf "$root" "$apt"
  mkdir -p "$root" "$apt/lists/partial" "$apt/archives/partial"
  : >"$apt/status"
  apt_get update
  apt_get install --download-only --no-install-recommends "${packages[@]}"
  local package link
  for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
  # A link to /lib/… means the folder's own lib, also for a linker that runs outside of it.
  find "$root" -lname '/*' -print0 | while IFS= read -r -d '' link; do
    ln -sfn "$root$(readlink "$link")" "$link"
  done
  rm -rf "$apt"
}
export -f apt_get unpack
export architecture apt root
"$here/step.sh" "$cache/sysroot-$architecture.log" "unpacking libraries for $architecture in $root" \
  bash -c "set -euo pipefail; packages=($wanted); unpack" >&2
echo "$wanted" >"$root/limpid-packages"
echo "$root"
