#!/usr/bin/env bash
# Measures the speed of SGLang's GSM8K benchmark: 1,000 questions with 8 shots, all in flight, on
# Llama-3.1-8B's shape with dummy weights and outputs of 128 tokens, once per decode backend.
#   bench/gsm8k_speed.sh QUIRE CONFIG.json TOKENIZER_DIR GSM8K_DIR [BACKEND]...
set -euo pipefail
quire=$1 config=$2 tokenizer=$3 data=$4
shift 4
[[ $# -gt 0 ]] || set -- xqa flashinfer cudnn native auto
for backend in "$@"; do
  result=$("$quire" eval gsm8k --model "$config" --load-format dummy --tokenizer "$tokenizer" \
    --data "$data/test.jsonl" --shots "$data/train.jsonl" --num-shots 8 --num-questions 1000 \
    --parallel 1000 --max-tokens 128 --ignore-eos --max-model-len 4096 --max-num-seqs 1000 \
    --device cuda --log-level error --decode-attention-backend "$backend" 2>&1 |
    grep -E '^(Latency|Output)' | paste -sd' ') || true
  echo "$backend: ${result:-failed}"
done
