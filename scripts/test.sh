#!/usr/bin/env bash
# Installs what the tests need, builds, and runs every CPU test. Arguments go to ctest.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh test
cmake --preset release -DQUIRE_TESTS=ON >/dev/null
cmake --build build
ctest --test-dir build --output-on-failure "$@"
