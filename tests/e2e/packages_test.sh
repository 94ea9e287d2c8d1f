#!/usr/bin/env bash
# Packages a build, installs each package in a new system that has nothing else, and lets the
# embedded model answer there.
#   packages_test.sh SOURCE_DIR BUILD_DIR
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

cat >"$work/packages/check.sh" <<'CHECK'
set -euo pipefail
cd /packages
answers() {
  echo "== $*"
  "$@" --version
  "$@" generate --chat --max-tokens 256 --prompt "Sam collected 28 stickers. Rosa has three times \
as many stickers as Sam. Ivan has 6 less than Rosa. How many stickers do the three of them have?" |
    tee /dev/stderr | grep -q '= 190$'
}
# The .deb comes last, because it installs libraries of which the others must have their own.
tar xzf *.tar.gz
answers quire*-linux-x86_64/bin/quire
python3 -m venv venv
venv/bin/pip install -q --no-index *.whl
answers venv/bin/quire
answers venv/bin/python -m quire
venv/bin/pip uninstall -q -y quire
[[ ! -e venv/bin/quire ]]
apt-get install -qq -y --no-install-recommends ./*.deb >/dev/null
answers quire
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
