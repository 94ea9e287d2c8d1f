#!/usr/bin/env bash
# Installs the packages that the tests need, builds, and runs the tests that every change must pass;
# those that need a GPU are skipped without one.
#   scripts/test.sh [--nightly] [--clients] [CTEST ARGUMENTS]
# --nightly adds the long tests (label nightly). --clients adds the server's tests with clients and
# routers from PyPI, which take minutes, download 480 MB and put 2.1 GB into the build tree; without a
# network they are skipped. Other arguments go to ctest: -R NAME runs some tests, -L clients those
# with clients and routers.
# QUIRE_CUDA=OFF in the environment omits the CUDA engine; QUIRE_CUDA_ARCHITECTURES=90a-real builds it
# for one kind of GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/configure.sh

clients=OFF
report=tests
levels=(-LE nightly)
while [[ "${1:-}" == --* ]]; do
  case $1 in
    --help) sed -n '2,/^set /{s/^# //p}' "$0"; exit ;;
    --clients) clients=ON report=client_tests ;;
    --nightly) levels=() ;;
    *) break ;;
  esac
  shift
done
scripts/install_deps.sh test
configure -DQUIRE_TESTS=ON -DQUIRE_CLIENT_TESTS=$clients >/dev/null
cmake --build build
# The real model of smollm2_test, which is skipped if it is missing.
if [[ -z ${QUIRE_TEST_SMOLLM2:-} ]] && QUIRE_MODELS=$PWD/build/pulled build/quire pull smollm2 >/dev/null; then
  export QUIRE_TEST_SMOLLM2=$PWD/build/pulled/smollm2/smollm2.gguf
fi
[[ ${QUIRE_CUDA:-} != ON ]] || report=cuda_tests
scripts/run_tests.sh build $report "${levels[@]}" "$@"
