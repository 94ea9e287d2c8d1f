#!/usr/bin/env bash
# Runs every fuzzer for a number of seconds each (default 20), one per core at a time, from the
# corpora in fuzz/corpus.
#   scripts/fuzz.sh [SECONDS] [NAME…]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}
shift || true
if [[ $# -gt 0 ]]; then
  fuzzers=("${@/%/_fuzz}")
  scripts/sanitize.sh --build-only "${fuzzers[@]}"
else
  scripts/sanitize.sh --build-only
  mapfile -t fuzzers <build-asan/fuzzers.txt
fi
[[ ${#fuzzers[@]} -gt 0 ]] || { echo "there are no fuzzers in build-asan/fuzzers.txt" >&2; exit 1; }

run_fuzzer() {
  local seconds=$1 fuzzer=$2
  local name=${fuzzer%_fuzz}
  local work=build-asan/corpus/$name log=build-asan/$fuzzer.log
  mkdir -p "$work" "fuzz/corpus/$name"
  # New inputs go to the build tree; the committed corpus stays small and is only read.
  if ! "build-asan/bin/$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build-asan/$name-" "$work" "fuzz/corpus/$name" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    echo "$fuzzer failed; the input is build-asan/$name-*" >&2
    return 1
  fi
  echo "$fuzzer, $seconds s: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs"
}
export -f run_fuzzer
printf '%s\n' "${fuzzers[@]}" | xargs -P "$(nproc)" -I {} bash -c "run_fuzzer $seconds {}"
echo "${#fuzzers[@]} fuzzers, no findings"
