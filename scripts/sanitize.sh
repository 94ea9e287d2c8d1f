#!/usr/bin/env bash
# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, in the tree that holds the
# fuzzers too; with `thread`, the engine's threaded tests under ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh test
if [[ "${1:-}" == thread ]]; then
  cmake -S . -B build-tsan -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUIRE_SANITIZE=thread \
    -DCMAKE_CXX_COMPILER=clang++ >/dev/null
  cmake --build build-tsan --target threaded_tests
  ctest --test-dir build-tsan --output-on-failure -L threaded
  exit 0
fi
cmake -S . -B build-asan -G Ninja -DCMAKE_BUILD_TYPE=Release -DQUIRE_FUZZ=ON \
  -DQUIRE_SANITIZE=address,undefined -DCMAKE_CXX_COMPILER=clang++ >/dev/null
cmake --build build-asan
if [[ "${1:-}" != --build-only ]]; then
  ctest --test-dir build-asan --output-on-failure -LE e2e
fi
