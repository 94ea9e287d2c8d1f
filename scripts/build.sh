#!/usr/bin/env bash
# Builds the release binary, build/quire. Arguments are targets (default: quire). QUIRE_CUDA=OFF in
# the environment omits the CUDA engine even if nvcc is found; QUIRE_CUDA_ARCHITECTURES=90a-real builds
# it for one kind of GPU. Later calls keep both choices until they are given again (QUIRE_CUDA=AUTO).
# A new build folder becomes a unity build, which is the fastest full build. For work on the code,
# where one changed source is rebuilt, use `cmake --preset release -DQUIRE_UNITY=OFF`.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/configure.sh

chosen=${QUIRE_CUDA:-$(sed -n 's/^QUIRE_CUDA:[A-Z]*=//p' build/CMakeCache.txt 2>/dev/null || true)}
if command -v "${CUDACXX:-nvcc}" >/dev/null; then
  if [[ $chosen != OFF ]]; then
    here=$([[ -e /dev/nvidia0 ]] || echo ", though no GPU is here")
    echo "nvcc was found: building with the CUDA engine$here, 15 to 30 minutes on two cores;" \
      "QUIRE_CUDA=OFF leaves it out" >&2
  elif [[ -z ${QUIRE_CUDA:-} ]]; then
    echo "building without the CUDA engine, as chosen before; QUIRE_CUDA=AUTO builds it" >&2
  fi
fi
scripts/install_deps.sh
architectures=$(configure -DQUIRE_TESTS=OFF | sed -n 's/^-- CUDA architectures: //p')
[[ -z $architectures ]] || echo "CUDA architectures: $architectures" >&2
cmake --build build --target "${@:-quire}"
