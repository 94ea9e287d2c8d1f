#!/usr/bin/env bash
# Runs every test: all labels, clients and routers from PyPI, long fuzzing, ASan and TSan over all
# tests that can run under them, builds without unity and precompiled headers, and, if nvcc is found,
# the CUDA engine for Hopper and kernels for Ampere. Takes hours on two cores. Writes a table with one
# line per part to build/nightly_summary.md.
#   scripts/nightly.sh [PART…]    release plain asan fuzz tsan cuda ampere soak (default: all)
# The last part loads a server of three models for QUIRE_SOAK_HOURS, by default 8.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/parts.sh

release() { QUIRE_CUDA=OFF scripts/test.sh --nightly --clients; }
plain() {
  cmake --preset release -B build-plain -DQUIRE_CUDA=OFF -DQUIRE_UNITY=OFF -DQUIRE_PCH=OFF >/dev/null &&
    cmake --build build-plain && scripts/run_tests.sh build-plain tests -LE 'nightly|e2e'
}
asan() { scripts/sanitize.sh address --all; }
fuzz() { scripts/fuzz.sh 100; }
tsan() { scripts/sanitize.sh thread --all; }
have_nvcc() { command -v "${CUDACXX:-nvcc}" >/dev/null || { echo "nvcc is missing"; return 77; }; }
cuda() {
  have_nvcc || return
  QUIRE_CUDA=ON QUIRE_CUDA_ARCHITECTURES=90a-real scripts/test.sh --nightly
}
# The libraries in which kernels of Hopper and of all GPUs stand side by side, for Ampere alone.
ampere() {
  have_nvcc || return
  QUIRE_CUDA=ON scripts/install_deps.sh test
  cmake --preset release -B build-ampere -DQUIRE_TESTS=OFF -DQUIRE_CUDA=ON \
    -DQUIRE_CUDA_ARCHITECTURES=80-real >/dev/null &&
    cmake --build build-ampere --target quire_cuda_ops quire_cuda_step quire_cuda_gather
}

soak() {
  QUIRE_CUDA=OFF scripts/build.sh >/dev/null &&
    python3 -B tests/e2e/models_soak.py --quire build/quire --models models --hours "${QUIRE_SOAK_HOURS:-8}"
}

declare -A names=(
  [release]="release: all tests, clients, routers" [plain]="without unity and precompiled headers"
  [asan]="ASan and UBSan" [fuzz]="fuzzers, 100 s each" [tsan]="TSan"
  [cuda]="CUDA engine for Hopper" [ampere]="kernels for Ampere" [soak]="soak of three models")
parts=("$@")
(($#)) || parts=(release plain asan fuzz tsan cuda ampere soak)
for name in "${parts[@]}"; do
  [[ -n ${names[$name]:-} ]] || { sed -n '2,/^set /{s/^# //p}' "$0" >&2; exit 2; }
done
scripts/install_deps.sh test
begin_parts build/nightly_summary.md "Nightly tests"
for name in "${parts[@]}"; do part "${names[$name]}" "$name"; done
end_parts
