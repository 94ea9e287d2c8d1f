#!/usr/bin/env bash
# Builds and runs tests under AddressSanitizer and UndefinedBehaviorSanitizer, in the build tree that
# also has the fuzzers, or under ThreadSanitizer. Only the targets that run are built.
#   scripts/sanitize.sh [address|thread]            the tests that CI runs: labels asan, tsan
#   scripts/sanitize.sh [address|thread] TEST…      these tests
#   scripts/sanitize.sh [address|thread] --all      address: all but those that run the binary;
#                                                   thread: all that have threads, the server included
#   scripts/sanitize.sh address --build-only TARGET…
set -euo pipefail
cd "$(dirname "$0")/.."

kind=address
if [[ "${1:-}" == address || "${1:-}" == thread ]]; then
  kind=$1
  shift
fi
if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  sed -n '2,/^set /{s/^# //p}' "$0"
  exit
fi
declare -A presets=([address]=asan [thread]=tsan)
preset=${presets[$kind]}
scripts/install_deps.sh test
# With a sanitizer, the soak of all requests takes minutes.
export QUIRE_SOAK_REQUESTS=${QUIRE_SOAK_REQUESTS:-1000}
# The presets build with -O1: with full unrolling of SIMD kernels, a sanitizer takes minutes per file.
# For the tests that CI runs, a new build folder becomes a unity build; all others have presets as they are.
unity=
[[ -n ${1:-} || -e build-$preset/CMakeCache.txt ]] || unity=-DQUIRE_UNITY=ON
cmake --preset "$preset" $unity >/dev/null
build() { cmake --build "build-$preset" --target "$@"; }
run() { scripts/run_tests.sh "build-$preset" "$@"; }
case "${1:-}" in
  --build-only) build "${@:2}" ;;
  --all)
    if [[ $kind == address ]]; then
      build all
      run all_tests -LE e2e
    else
      build threaded_tests
      run all_tests -L threaded
    fi
    ;;
  "")
    build "${preset}_tests"
    run tests -L "$preset"
    ;;
  *)
    build "$@"
    run some_tests -R "^($(IFS='|' && echo "$*"))\$"
    ;;
esac
