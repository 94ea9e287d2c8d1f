#!/usr/bin/env bash
# Installs the packages that the tests need, builds, and runs all tests; those that need a GPU are
# skipped without one. With --clients as the first argument it also runs the server's tests with
# clients and routers from PyPI, which takes minutes, downloads 480 MB and puts 2.1 GB into the build
# tree; without a network they are skipped. Other arguments are passed to ctest.
# QUIRE_CUDA=OFF in the environment omits the CUDA engine; QUIRE_CUDA_ARCHITECTURES=90a-real builds it
# for one kind of GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  sed -n '2,/^set /{s/^# //p}' "$0"
  exit
fi
clients=OFF
if [[ "${1:-}" == --clients ]]; then
  clients=ON
  shift
fi
scripts/install_deps.sh test
cmake --preset release -DQUIRE_TESTS=ON -DQUIRE_CLIENT_TESTS=$clients \
  ${QUIRE_CUDA:+-DQUIRE_CUDA="$QUIRE_CUDA"} \
  ${QUIRE_CUDA_ARCHITECTURES:+-DQUIRE_CUDA_ARCHITECTURES="$QUIRE_CUDA_ARCHITECTURES"} >/dev/null
cmake --build build
ctest --test-dir build --output-on-failure --no-tests=error -j "$(nproc)" "$@"
