#!/usr/bin/env bash
# Packages a build, installs each package in a new system that has nothing else, no GPU driver
# either, and lets the embedded model answer there. A build with the CUDA engine is packaged as
# quire-cuda, and must answer on its CPU engine where there is no driver.
#   packages_test.sh SOURCE_DIR BUILD_DIR HAS_CUDA(ON|OFF)
# Exits with 77, which CTest reports as skipped, where it cannot make such a system.
set -euo pipefail
skip() { echo "skipped: $1" >&2; exit 77; }
. /etc/os-release
[[ $(id -u) -eq 0 ]] || skip "only root can make a new system"
command -v mmdebstrap >/dev/null || skip "this machine lacks mmdebstrap"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1/scripts/package.sh" "$2"
cp -r "$2/packages" "$work/packages"

if [[ $3 == ON ]]; then
  echo "name=quire-cuda local_version=+cuda cuda_status='no NVIDIA driver is installed'"
else
  echo "name=quire local_version= cuda_status='this build has no CUDA'"
fi >"$work/packages/variant.sh"

cat >"$work/packages/check.sh" <<'CHECK'
set -euo pipefail
cd /packages
. ./variant.sh
fail() { echo "$1" >&2; exit 1; }

# Prints how long after the download the first answer comes.
begin() { begin_ns=$(date +%s%N); }
answers() {
  echo "== $*"
  "$@" --version
  "$@" generate --chat --max-tokens 256 --prompt "Sam collected 28 stickers. Rosa has three times \
as many stickers as Sam. Ivan has 6 less than Rosa. How many stickers do the three of them have?" |
    tee /dev/stderr | grep -q '= 190$'
  echo "the first answer came after $((($(date +%s%N) - begin_ns) / 1000000)) ms"
}
# The binary starts without a driver, and says what its CUDA engine lacks.
explains() {
  "$@" doctor | grep -F "$cuda_status" || fail "'$* doctor' does not say: $cuda_status"
  local status=0
  "$@" generate --device cuda hello 2>refusal.txt || status=$?
  grep -F "$cuda_status" refusal.txt || fail "--device cuda is not refused with: $cuda_status"
  [[ $status == 1 ]] || fail "--device cuda ended with $status, expected 1"
}
if compgen -G '/usr/lib/x86_64-linux-gnu/libcu[db]*' >/dev/null; then
  fail "this system has libraries of CUDA, so it does not show that the packages need none"
fi

# The .deb comes last, because it installs libraries of which the others must have their own.
begin
tar xzf "$name"-[0-9]*-linux-x86_64.tar.gz
answers "$name"-[0-9]*-linux-x86_64/bin/quire
explains "$name"-[0-9]*-linux-x86_64/bin/quire
python3 -m venv venv
begin
venv/bin/pip install -q --no-index *.whl
answers venv/bin/quire
explains venv/bin/python -m quire
venv/bin/pip show quire | grep -x "Version: [0-9.]*$local_version"
venv/bin/pip uninstall -q -y quire
[[ ! -e venv/bin/quire ]]
install_deb=(apt-get install -qq -y --no-install-recommends "./$(ls "$name"_*.deb)")
"${install_deb[@]}" --download-only >/dev/null
begin
"${install_deb[@]}" >/dev/null
answers quire
explains quire
if dpkg-query -W -f '${Depends}\n' "$name" | grep -iE 'nvidia|cuda|cublas|cudnn'; then
  fail "the .deb depends on a package of NVIDIA, so apt refuses it on a machine without a GPU"
fi
systemd_unit=/usr/lib/systemd/system/quire.service
grep -q '^ExecStart=/usr/bin/quire serve' $systemd_unit
bash -n /usr/share/bash-completion/completions/quire
CHECK

# The system exists only while the hooks run.
status=0
mmdebstrap --quiet --variant=apt --include=python3-venv "$VERSION_CODENAME" /dev/null \
  --customize-hook="touch '$work/is_made'" --customize-hook="copy-in '$work/packages' /" \
  --customize-hook='chroot "$1" bash /packages/check.sh' || status=$?
[[ -e $work/is_made ]] || skip "mmdebstrap could not make a system; is there a network?"
exit $status
