#!/usr/bin/env bash
# Runs a Python script with the modules of tests/support and with the packages that requirements.txt
# in its folder pins, in an environment below WORK_DIR. If the folder has openai3.txt, its packages
# precede them with PYTHONPATH=WORK_DIR/venv/openai3. If the packages cannot be installed, it exits
# with 77, which CTest reports as skipped.
#   clients_test.sh WORK_DIR SCRIPT.py [ARGUMENTS of the script …]
set -euo pipefail
work_dir=$1
script=$2
here=$(cd "$(dirname "$script")" && pwd)
support=$(cd "$(dirname "$0")/../support" && pwd)
shift 2
venv=$work_dir/venv

skip() {
  echo "skipped: $1" >&2
  exit 77
}

mkdir -p "$work_dir"
exec 9>"$work_dir/lock"  # one process installs, the others wait
flock 9
install() {
  "$venv/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes \
    -r "$here/$1" "${@:2}" || skip "the packages of $1 cannot be had"
}
pins() { cat "$here/requirements.txt" $(compgen -G "$here/openai3.txt"); }
if ! pins | cmp -s - "$venv/installed.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv" || skip "python3 has no venv; scripts/install_deps.sh test installs it"
  install requirements.txt
  [[ ! -e $here/openai3.txt ]] || install openai3.txt --target "$venv/openai3"
  pins >"$venv/installed.txt"
fi
flock -u 9
cd "$work_dir"
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$support
# lm-eval's libraries keep their caches here and download nothing.
export HF_HOME=$work_dir/hf HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1 PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" "$here/${script##*/}" "$@" 9>&-
