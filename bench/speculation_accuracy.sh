#!/usr/bin/env bash
# Measures the embedded model's accuracy on its held-out problems with its drafters, for every
# decode backend, with graphs and eagerly. Prints one line per combination, and a summary. Several
# run at the same time, so their times are meaningless.
#   bench/speculation_accuracy.sh [QUIRE] [PROCESSES]
set -euo pipefail
cd "$(dirname "$0")/.."
quire=${1:-build/quire}
processes=${2:-6}

evaluate() { # QUIRE DRAFTER BACKEND [FLAG]...
  local quire=$1 drafter=$2 backend=$3 accuracy config
  shift 3
  case $drafter in
    none) config="" ;;
    eagle3) config='{"method": "eagle3", "num_speculative_tokens": 4}' ;;
    eagle3_fixed)
      config='{"method": "eagle3", "num_speculative_tokens": 4, "enable_adaptive_verification": false}' ;;
    eagle3_block)
      config='{"method": "eagle3", "num_speculative_tokens": 4, "draft_sample_method": "probabilistic",
               "rejection_sample_method": "block"}' ;;
    dflash) config='{"method": "dflash", "num_speculative_tokens": 7}' ;;
    suffix) config='{"method": "suffix", "num_speculative_tokens": 7}' ;;
  esac
  accuracy=$("$quire" eval gsm8k --data models/quire-abacus/heldout.jsonl --num-shots 0 \
    --num-questions 500 --device cuda --log-level error --kv-cache-memory 1G \
    --decode-attention-backend "$backend" ${config:+--speculative-config "$config"} "$@" 2>&1 |
    sed -n 's/^Accuracy: *//p')
  echo "$drafter $backend ${*:-graphs}: ${accuracy:-failed}"
}
export -f evaluate

for drafter in none eagle3 eagle3_fixed eagle3_block dflash suffix; do
  for backend in auto native flashinfer xqa; do
    for graphs in "" --enforce-eager; do
      echo "$quire $drafter $backend $graphs"
    done
  done
done | xargs -P "$processes" -I{} bash -c 'evaluate {}' | sort | tee /dev/stderr |
  awk '{ count[$NF]++ } END { for (a in count) print count[a] " with accuracy " a }'
