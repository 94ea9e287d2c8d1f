#!/usr/bin/env bash
# Runs the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer, in the build tree that
# also has the fuzzers. With `thread`, runs the threaded tests, the whole server included, under
# ThreadSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh test
# With a sanitizer, the soak of all requests takes minutes.
export QUIRE_SOAK_REQUESTS=${QUIRE_SOAK_REQUESTS:-1000}
# The presets build with -O1: with full unrolling of SIMD kernels, a sanitizer takes minutes per file.
if [[ "${1:-}" == thread ]]; then
  cmake --preset tsan >/dev/null
  cmake --build build-tsan --target threaded_tests
  ctest --test-dir build-tsan --output-on-failure --no-tests=error -j "$(nproc)" -L threaded
  exit 0
fi
cmake --preset asan >/dev/null
if [[ "${1:-}" == --build-only ]]; then  # the other arguments are targets (default: all)
  cmake --build build-asan ${2:+--target "${@:2}"}
  exit 0
fi
cmake --build build-asan
ctest --test-dir build-asan --output-on-failure --no-tests=error -j "$(nproc)" -LE e2e
