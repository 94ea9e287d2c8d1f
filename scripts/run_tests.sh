#!/usr/bin/env bash
# Runs tests of a build folder with CTest, as all scripts do: shows failures, fails if no test
# matches, writes BUILD/NAME.xml (JUnit), and ends with the ten slowest.
#   scripts/run_tests.sh BUILD NAME [CTEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."

report=$PWD/$1/$2.xml
failed=0
ctest --test-dir "$1" --output-on-failure --no-tests=error -j "$(nproc)" --output-junit "$report" \
  "${@:3}" || failed=$?
if [[ -e $report ]]; then
  echo "The slowest tests, in seconds ($report has all):"
  sed -n 's/.*<testcase name="\([^"]*\)".* time="\([^"]*\)".*/\2 \1/p' "$report" | sort -rn |
    awk 'NR <= 10 { printf "%8.1f  %s\n", $1, $2 }'
fi
exit "$failed"
