#!/usr/bin/env bash
# Runs page_test.py with the packages that requirements.txt pins, in an environment below WORK_DIR.
# If there is no browser, or the packages cannot be installed, it exits with 77, which CTest reports
# as skipped.
#   page_test.sh WORK_DIR [ARGUMENTS of page_test.py …]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work_dir=$1
shift
venv=$work_dir/venv

skip() {
  echo "skipped: $1" >&2
  exit 77
}

command -v chromium chromium-browser google-chrome >/dev/null ||
  skip "chromium is not installed; scripts/install_deps.sh test installs it"
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv" || skip "python3 has no venv; scripts/install_deps.sh test installs it"
  "$venv/bin/pip" install -q --disable-pip-version-check --require-hashes --only-binary=:all: \
    -r "$here/requirements.txt" || skip "the packages of requirements.txt cannot be had"
  cp "$here/requirements.txt" "$venv/installed.txt"
fi
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$here/page_test.py" "$@"
