#!/usr/bin/env bash
# Makes the release binary, build/quire. Arguments are targets (default: quire). QUIRE_CUDA=OFF in
# the environment leaves the CUDA engine out, also where nvcc is found.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
cmake --preset release -DQUIRE_TESTS=OFF -DQUIRE_CUDA="${QUIRE_CUDA:-AUTO}" >/dev/null
cmake --build build --target "${@:-quire}"
