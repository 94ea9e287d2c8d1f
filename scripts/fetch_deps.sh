#!/usr/bin/env bash
# Downloads the one library that is compiled in but no distribution packages, XGrammar, pinned by
# hash in cmake/xgrammar_pin.txt, and unpacks what is used of it to .deps/xgrammar. pip only says
# where the file is: nothing is installed into Python, and none of the package's Python runs. Does
# nothing where .deps/xgrammar is already right.
set -euo pipefail
cd "$(dirname "$0")/.."

pin=cmake/xgrammar_pin.txt
stamp=$(cat "$pin" scripts/fetch_deps.sh | sha256sum | cut -d' ' -f1)
[[ "$(cat .deps/xgrammar/stamp 2>/dev/null)" != "$stamp" ]] || exit 0
if ! python3 -m pip --version >/dev/null 2>&1; then
  echo "fetch_deps: python3 with pip is missing; install the package python3-pip" >&2
  exit 1
fi

read -r version sha256 < <(grep -v '^#' "$pin")
mkdir -p .deps
work=$(mktemp -d .deps/xgrammar.XXXXXX)
trap 'rm -rf "$work"' EXIT
echo "fetching XGrammar to .deps/xgrammar" >&2
python3 scripts/fetch_sdist.py xgrammar "$version" "$sha256" "$work/sdist.tar.gz"
new=$work/new
mkdir "$new"
tar -xzf "$work/sdist.tar.gz" -C "$new" --strip-components=1 --no-same-owner \
  "xgrammar-$version"/{LICENSE,NOTICE,cpp,include} \
  "xgrammar-$version"/3rdparty/{picojson,dlpack/include,dlpack/LICENSE}
rm -rf "$new/cpp/tvm_ffi"
echo "$stamp" >"$new/stamp"
rm -rf .deps/xgrammar
mv "$new" .deps/xgrammar
