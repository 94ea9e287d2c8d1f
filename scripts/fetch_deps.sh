#!/usr/bin/env bash
# Downloads the libraries that are compiled in but that no distribution packages as Quire needs them,
# each pinned by version and hash in cmake/NAME_pin.txt, and unpacks what is used of them to
# .deps/NAME: XGrammar, libzmq, whose sources are part of pyzmq's source package, and KaTeX, which
# djangocms-katex contains as released. pip only says where the files are: nothing is installed into
# Python, and none of the packages' Python runs. Does nothing where .deps/NAME is already right.
set -euo pipefail
cd "$(dirname "$0")/.."

work=
trap '[[ -z $work ]] || rm -rf "$work"' EXIT

stamp_of() { cat "cmake/$1_pin.txt" scripts/fetch_deps.sh | sha256sum | cut -d' ' -f1; }

# fetch NAME PACKAGE FOLDER FILE...: the files of a folder in PACKAGE, of the version of NAME's pin.
fetch() {
  local name=$1 package=$2 folder=$3
  shift 3
  local stamp version sha256
  stamp=$(stamp_of "$name")
  [[ "$(cat ".deps/$name/stamp" 2>/dev/null)" != "$stamp" ]] || return 0
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "fetch_deps: python3 with pip is missing; install the package python3-pip" >&2
    exit 1
  fi
  read -r version sha256 < <(grep -v '^#' "cmake/${name}_pin.txt")
  mkdir -p .deps
  work=$(mktemp -d ".deps/$name.XXXXXX")
  echo "fetching $name to .deps/$name" >&2
  python3 scripts/fetch_sdist.py "$package" "$version" "$sha256" "$work/sdist.tar.gz"
  local root=$package-$version/$folder
  root=${root%/}
  mkdir "$work/new"
  tar -xzf "$work/sdist.tar.gz" -C "$work/new" --no-same-owner \
    --strip-components="$(tr '/' '\n' <<<"$root" | wc -l)" "${@/#/$root/}"
  echo "$stamp" >"$work/new/stamp"
  rm -rf ".deps/$name"
  mv "$work/new" ".deps/$name"
  rm -rf "$work"
  work=
}

fetch xgrammar xgrammar "" LICENSE NOTICE cpp include 3rdparty/{picojson,dlpack/include,dlpack/LICENSE}
rm -rf .deps/xgrammar/cpp/tvm_ffi
fetch libzmq pyzmq bundled/zeromq COPYING COPYING.LESSER include src
fetch katex djangocms_katex djangocms_katex/static/djangocms_katex/vendor/katex LICENSE katex.min.js katex.min.css fonts
