#!/usr/bin/env bash
# Makes the release binary, build/quire. Arguments are targets (default: quire).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
cmake --preset release -DQUIRE_TESTS=OFF >/dev/null
cmake --build build --target "${@:-quire}"
