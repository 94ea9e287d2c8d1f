#!/usr/bin/env bash
# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, in the tree that holds the
# fuzzers too; with `thread`, the engine's threaded tests under ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh test
# -O1: a sanitizer over fully unrolled SIMD kernels takes minutes a file to compile.
configure=(cmake -S . -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -g1"
  -DCMAKE_CXX_COMPILER=clang++)
if [[ "${1:-}" == thread ]]; then
  "${configure[@]}" -B build-tsan -DQUIRE_SANITIZE=thread >/dev/null
  cmake --build build-tsan --target threaded_tests
  ctest --test-dir build-tsan --output-on-failure -L threaded
  exit 0
fi
"${configure[@]}" -B build-asan -DQUIRE_FUZZ=ON -DQUIRE_SANITIZE=address,undefined >/dev/null
cmake --build build-asan
if [[ "${1:-}" != --build-only ]]; then
  ctest --test-dir build-asan --output-on-failure -LE e2e
fi
