#!/usr/bin/env bash
# Makes the release binary, build/quire. Arguments are targets (default: quire). QUIRE_CUDA=OFF in
# the environment leaves the CUDA engine out, also where nvcc is found; later calls keep the choice
# until QUIRE_CUDA says AUTO or ON.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
cmake --preset release -DQUIRE_TESTS=OFF ${QUIRE_CUDA:+-DQUIRE_CUDA="$QUIRE_CUDA"} >/dev/null
cmake --build build --target "${@:-quire}"
