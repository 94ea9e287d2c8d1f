#!/usr/bin/env bash
# Measures the embedded model's accuracy on its held-out problems for every decode backend x graphs
# or eager x page size x prefix cache on or off. Prints one line per combination, and a summary.
# Several run at the same time, so their times are meaningless.
#   bench/gsm8k_grid.sh [QUIRE] [PROCESSES]
set -euo pipefail
cd "$(dirname "$0")/.."
quire=${1:-build/quire}
processes=${2:-6}

evaluate() { # QUIRE BACKEND PAGE [FLAG]...
  local quire=$1 backend=$2 page=$3 accuracy
  shift 3
  accuracy=$("$quire" eval gsm8k --data models/quire-abacus/heldout.jsonl --num-shots 0 \
    --num-questions 500 --device cuda --log-level error --kv-cache-memory 1G \
    --decode-attention-backend "$backend" --page-size "$page" "$@" 2>&1 |
    sed -n 's/^Accuracy: *//p')
  echo "$backend page $page ${*:-graphs, prefix cache}: ${accuracy:-failed}"
}
export -f evaluate

for backend in auto native flashinfer xqa cudnn; do
  for page in 16 32 64; do
    for graphs in "" --enforce-eager; do
      for cache in "" --no-enable-prefix-caching; do
        echo "$quire $backend $page $graphs $cache"
      done
    done
  done
done | xargs -P "$processes" -I{} bash -c 'evaluate {}' | sort | tee /dev/stderr |
  awk '{ count[$NF]++ } END { for (a in count) print count[a] " with accuracy " a }'
