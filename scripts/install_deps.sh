#!/usr/bin/env bash
# Installs what building (and, with `test`, testing) needs from the distribution, and nothing that
# is already there. Debian 12 and Ubuntu 24.04 have all of it.
set -euo pipefail

packages=(g++ cmake ninja-build ccache pkg-config libfmt-dev libspdlog-dev libsimdjson-dev
  libcli11-dev libhwy-dev libutf8proc-dev libpcre2-dev libssl-dev)
if [[ "${1:-build}" == test ]]; then
  packages+=(libgtest-dev libgmock-dev clang llvm libclang-rt-dev)
fi

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

missing=()
for package in "${packages[@]}"; do
  # Debian 12 ships clang's sanitizer and fuzzer runtimes under a versioned name only.
  if [[ $package == libclang-rt-dev ]] && ! apt-cache show "$package" >/dev/null 2>&1; then
    package=libclang-rt-14-dev
  fi
  installed "$package" || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo)
echo "installing: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
  "${missing[@]}" >/dev/null
