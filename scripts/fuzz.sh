#!/usr/bin/env bash
# Runs every fuzzer for a number of seconds each (default 20), from the corpora in fuzz/corpus.
#   scripts/fuzz.sh [SECONDS] [NAME…]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}
shift || true
scripts/sanitize.sh --build-only
if [[ $# -gt 0 ]]; then
  fuzzers=("${@/%/_fuzz}")
else
  mapfile -t fuzzers <build-asan/fuzzers.txt
fi
[[ ${#fuzzers[@]} -gt 0 ]] || { echo "there are no fuzzers in build-asan/fuzzers.txt" >&2; exit 1; }
for fuzzer in "${fuzzers[@]}"; do
  name=${fuzzer%_fuzz}
  work=build-asan/corpus/$name
  mkdir -p "$work" "fuzz/corpus/$name"
  echo "== $fuzzer, $seconds s"
  # New inputs go to the build tree; the committed corpus stays small and is only read.
  log=build-asan/$fuzzer.log
  if ! "build-asan/bin/$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix=build-asan/ "$work" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "$fuzzer found something; the input is in build-asan/" >&2
    exit 1
  fi
  grep number_of_executed_units "$log"
done
echo "${#fuzzers[@]} fuzzers, no findings"
