#!/usr/bin/env bash
# Installs what the tests need, builds, and runs every CPU test. With --clients as the first
# argument, also the server's tests with clients from PyPI: 173 MB to fetch, 860 MB in the build
# tree, minutes; without a network they are skipped. Other arguments go to ctest.
# QUIRE_CUDA=OFF in the environment leaves the CUDA engine out.
set -euo pipefail
cd "$(dirname "$0")/.."

clients=OFF
if [[ "${1:-}" == --clients ]]; then
  clients=ON
  shift
fi
scripts/install_deps.sh test
cmake --preset release -DQUIRE_TESTS=ON -DQUIRE_CLIENT_TESTS=$clients \
  -DQUIRE_CUDA="${QUIRE_CUDA:-AUTO}" >/dev/null
cmake --build build
ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)" "$@"
