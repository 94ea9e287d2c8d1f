#!/usr/bin/env bash
# Builds the release binary, build/quire. Arguments are targets (default: quire). QUIRE_CUDA=OFF in
# the environment omits the CUDA engine even if nvcc is found; QUIRE_CUDA_ARCHITECTURES=90a-real builds
# it for one kind of GPU. Later calls keep both choices until they are given again (QUIRE_CUDA=AUTO).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install_deps.sh
cmake --preset release -DQUIRE_TESTS=OFF ${QUIRE_CUDA:+-DQUIRE_CUDA="$QUIRE_CUDA"} \
  ${QUIRE_CUDA_ARCHITECTURES:+-DQUIRE_CUDA_ARCHITECTURES="$QUIRE_CUDA_ARCHITECTURES"} >/dev/null
cmake --build build --target "${@:-quire}"
