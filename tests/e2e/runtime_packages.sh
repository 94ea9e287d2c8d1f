#!/usr/bin/env bash
# Compares the packages that docs/install.md lists for running Quire with those the binary links.
#   runtime_packages.sh BINARY SOURCE_DIR
# On a distribution other than the page's it exits with 77, which CTest reports as skipped.
set -euo pipefail
binary=$1
page=$2/docs/install.md
. /etc/os-release
[[ $ID == debian && $VERSION_ID == 12 ]] || { echo "skipped: this is no Debian 12" >&2; exit 77; }

# The C library and GCC's libraries are installed wherever the C++ run time is.
needed=$(ldd "$binary" | awk '/=> \//{print $3}' | xargs -n1 readlink -f | xargs -n1 basename |
  xargs -I{} dpkg -S '*/x86_64-linux-gnu/{}' | cut -d: -f1 | sort -u | grep -vxE 'libc6|libgcc-s1')
listed=$(sed -n '/^```runtime-packages$/,/^```$/p' "$page" | grep -v '```' | tr ' ' '\n' | sort -u)
if ! diff <(echo "$needed") <(echo "$listed") >&2; then
  echo "docs/install.md lists (>) other packages than $binary needs (<)" >&2
  exit 1
fi
