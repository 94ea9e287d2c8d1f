#!/usr/bin/env bash
# Installs the missing packages that building (and, with `test`, testing) needs on Debian 12 or
# Ubuntu 24.04. It also fetches XGrammar and libzmq, which these distributions lack as they are used
# here, and, if nvcc is found, the headers and sources for the CUDA engine.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v apt-get >/dev/null || {
  echo "needs Debian 12 or Ubuntu 24.04 (apt-get); docs/dependencies.md lists what to install" >&2
  exit 1
}

packages=(g++ cmake git ninja-build ccache pkg-config libfmt-dev libspdlog-dev libsimdjson-dev
  libedit-dev libhwy-dev libutf8proc-dev libpcre2-dev libssl-dev libboost-dev
  libcurl4-openssl-dev zlib1g-dev dpkg-dev file)
if [[ "${1:-build}" == test ]]; then
  packages+=(libgtest-dev libgmock-dev clang llvm libclang-rt-dev python3-venv curl openssl
    mmdebstrap)
  # Ubuntu has Chromium only as a snap; without a browser the page's tests are skipped.
  grep -q '^ID=ubuntu' /etc/os-release || packages+=(chromium)
fi
# A build without CUDA stays one until QUIRE_CUDA says otherwise.
if [[ -z ${QUIRE_CUDA:-} && -e build/CMakeCache.txt ]]; then
  QUIRE_CUDA=$(sed -n 's/^QUIRE_CUDA:[A-Z]*=//p' build/CMakeCache.txt)
fi
cuda=
if [[ ${QUIRE_CUDA:-AUTO} != OFF ]] && command -v "${CUDACXX:-nvcc}" >/dev/null; then
  cuda=1
fi
python3 -m pip --version >/dev/null 2>&1 || packages+=(python3-pip)

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }

missing=()
for package in "${packages[@]}"; do
  # Debian 12 ships clang's sanitizer and fuzzer runtimes only under a versioned name.
  if [[ $package == libclang-rt-dev ]] && grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; then
    package=libclang-rt-14-dev
  fi
  installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} -gt 0 ]]; then
  as_root=()
  [[ $(id -u) -eq 0 ]] || as_root=(sudo)
  echo "installing: ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
fi
scripts/fetch_deps.sh
[[ -z $cuda ]] || scripts/fetch_cuda_deps.sh
