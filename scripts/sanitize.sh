#!/usr/bin/env bash
# The unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, in the tree that holds the
# fuzzers too; with `thread`, what has threads under ThreadSanitizer, the whole server too.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh test
# The presets build with -O1: a sanitizer over fully unrolled SIMD kernels takes minutes a file.
if [[ "${1:-}" == thread ]]; then
  cmake --preset tsan >/dev/null
  cmake --build build-tsan --target threaded_tests
  ctest --test-dir build-tsan --output-on-failure --no-tests=error -j "$(nproc)" -L threaded
  exit 0
fi
cmake --preset asan >/dev/null
cmake --build build-asan
if [[ "${1:-}" != --build-only ]]; then
  ctest --test-dir build-asan --output-on-failure --no-tests=error -j "$(nproc)" -LE e2e
fi
