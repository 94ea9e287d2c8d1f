#!/usr/bin/env bash
# Builds the release binary, build/quire. Arguments are targets (default: quire). QUIRE_CUDA=OFF in
# the environment omits the CUDA engine even if nvcc is found; later calls keep this choice until
# QUIRE_CUDA is AUTO or ON.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
cmake --preset release -DQUIRE_TESTS=OFF ${QUIRE_CUDA:+-DQUIRE_CUDA="$QUIRE_CUDA"} >/dev/null
cmake --build build --target "${@:-quire}"
