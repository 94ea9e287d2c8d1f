#!/usr/bin/env bash
# Downloads the headers and sources that the CUDA engine is compiled against, pinned by hash in
# cmake/cuda_requirements.txt, and unpacks what it uses to .deps/cuda. pip only carries the files:
# nothing is installed into Python. Does nothing where .deps/cuda is already right.
set -euo pipefail
cd "$(dirname "$0")/.."

pins=cmake/cuda_requirements.txt
stamp=$(cat "$pins" scripts/fetch_cuda_deps.sh | sha256sum | cut -d' ' -f1)
[[ "$(cat .deps/cuda/stamp 2>/dev/null)" != "$stamp" ]] || exit 0
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "fetch_cuda_deps: python3 with pip is missing; install the package python3-pip" >&2
  exit 1
fi

mkdir -p .deps
work=$(mktemp -d .deps/cuda.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching FlashInfer, CUTLASS, CCCL and the cuDNN frontend to .deps/cuda" >&2
# A fixed interpreter and platform name the same files everywhere; only text is taken from them.
python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
  --only-binary=:all: --python-version 3.11 --implementation cp --platform manylinux_2_28_x86_64 \
  -r "$pins" -d "$work/wheels"
for wheel in "$work"/wheels/*.whl; do
  python3 -m zipfile -e "$wheel" "$work/all"
done

new=$work/new
data=$work/all/flashinfer/data
mkdir -p "$new"/{flashinfer/csrc,cutlass/tools/util,cccl/{cub,libcudacxx,thrust},cudnn_frontend}
mv "$data/include" "$new/flashinfer/"
mv "$data/csrc/xqa" "$new/flashinfer/csrc/"
mv "$data/cutlass/include" "$new/cutlass/"
mv "$data/cutlass/tools/util/include" "$new/cutlass/tools/util/"
for part in cub/cub libcudacxx/include thrust/thrust; do
  mv "$data/cccl/$part" "$new/cccl/$(dirname $part)/"
done
mv "$work/all/include" "$new/cudnn_frontend/"
for licences in "$work"/all/*.dist-info/licenses; do
  name=$(basename "$(dirname "$licences")")
  mv "$licences" "$new/licenses-${name%%-*}"
done
echo "$stamp" >"$new/stamp"
rm -rf .deps/cuda
mv "$new" .deps/cuda
