#!/usr/bin/env bash
# Builds Quire and makes the packages that are installed without a compiler, in build/packages:
#   quire_VERSION_amd64.deb             for the distribution of this machine
#   quire-VERSION-linux-x86_64.tar.gz   with its libraries, for systems with glibc 2.35 and GCC 12's
#                                       run time, or later
#   quire-VERSION-….whl                 the same as a Python wheel: pip installs the binary
# With the CUDA engine they are named quire-cuda, the wheel's version VERSION+cuda. QUIRE_CUDA=OFF in
# the environment omits it even if nvcc is found. With a build folder as the argument, it packages
# that build as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
[[ -n ${1:-} ]] || scripts/build.sh
value() { sed -n "s/^set(CPACK_PACKAGE_$1 \"\(.*\)\")$/\1/p" "$build/CPackConfig.cmake"; }
name=$(value NAME)
version=$(value VERSION)

packages=$build/packages
rm -rf "$packages"
cpack --config "$build/CPackConfig.cmake" >/dev/null
tree=$packages/$name-$version-linux-x86_64
for component in runtime libraries; do
  cmake --install "$build" --component "$component" --prefix "$tree" --strip >/dev/null
done
tar -C "$packages" --owner 0 --group 0 --sort name -czf "$tree.tar.gz" "${tree##*/}"
[[ $name == quire ]] || version+=+cuda
python3 scripts/make_wheel.py "$tree" "$version" "$packages"
rm -r "$tree" "$packages/_CPack_Packages"
ls -sh "$packages"
