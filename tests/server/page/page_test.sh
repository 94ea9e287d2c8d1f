#!/usr/bin/env bash
# Runs page_test.py with the packages that requirements.txt pins, in an environment below WORK_DIR.
# If there is no browser, or the packages cannot be installed, it exits with 77, which CTest reports
# as skipped.
#   page_test.sh WORK_DIR [ARGUMENTS of page_test.py …]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v chromium chromium-browser google-chrome >/dev/null; then
  echo "skipped: chromium is not installed; scripts/install_deps.sh test installs it" >&2
  exit 77
fi
exec bash "$here/../../clients/clients_test.sh" "$1" "$here/page_test.py" "${@:2}"
