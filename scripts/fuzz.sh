#!/usr/bin/env bash
# Runs fuzzers for a number of seconds each (default 20), one per core at a time, from the corpora in
# fuzz/corpus: those that are named; with --quick those whose build needs no engine; otherwise all.
#   scripts/fuzz.sh [SECONDS] [--quick | NAME…]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=20
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
fi
scripts/install_deps.sh test
cmake --preset asan >/dev/null
case "${1:-}" in
  "") mapfile -t fuzzers <build-asan/fuzzers.txt ;;
  --quick) mapfile -t fuzzers <build-asan/quick_fuzzers.txt ;;
  *) fuzzers=("${@/%/_fuzz}") ;;
esac
[[ -n ${fuzzers[0]} ]] || { echo "there are no fuzzers in build-asan/fuzzers.txt" >&2; exit 1; }
scripts/sanitize.sh address --build-only "${fuzzers[@]}"

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
