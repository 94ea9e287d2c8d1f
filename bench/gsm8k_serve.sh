#!/usr/bin/env bash
# Runs the load of bench/gsm8k_speed.sh over `quire serve`: 1,000 questions with 8 shots and outputs
# of 128 tokens, sent by `quire bench serve` on the same machine, once per decode backend and number
# of streams. Each run has a new server, whose prefix cache is empty.
#   bench/gsm8k_serve.sh QUIRE CONFIG.json TOKENIZER_DIR GSM8K_DIR [BACKEND]...
# STREAMS="64 128 256 500" names the numbers of streams. It needs jq and curl.
set -euo pipefail
quire=$1 config=$2 tokenizer=$3 data=$4
shift 4
[[ $# -gt 0 ]] || set -- xqa flashinfer cudnn native auto
work=$(mktemp -d)
server=
stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  server=
}
trap 'stop; rm -r "$work"' EXIT

shots=$(head -n 8 "$data/train.jsonl" | jq -rj '"Question: \(.question)\nAnswer: \(.answer)\n\n"')
head -n 1000 "$data/test.jsonl" | jq -c --arg shots "$shots" \
  '{prompt: "\($shots)\n\nQuestion: \(.question)\nAnswer:", output_length: 128}' >"$work/trace.jsonl"

serve() { # BACKEND: sets server and port
  "$quire" serve --model "$config" --load-format dummy --tokenizer "$tokenizer" --port 0 \
    --max-model-len 4096 --max-num-seqs 1000 --device cuda --decode-attention-backend "$1" \
    >"$work/serve.log" 2>&1 &
  server=$!
  for _ in $(seq 600); do
    port=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$work/serve.log" | head -n 1 | grep -oE '[0-9]+$') &&
      curl -sf "http://127.0.0.1:$port/health" >/dev/null && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  tail -n 3 "$work/serve.log" >&2
  return 1
}

echo "backend streams completed | output tokens/s | TTFT ms median p99 | TPOT ms median p99 |" \
  "ITL ms median p99 | client CPU, of a core"
for backend in "$@"; do
  for streams in ${STREAMS:-64 128 256 500}; do
    serve "$backend"
    "$quire" bench serve --port "$port" --dataset-name trace --dataset-path "$work/trace.jsonl" \
      --max-concurrency "$streams" --ignore-eos --num-warmups 1 --log-level error \
      --json "$work/result.json" >"$work/bench.log" 2>&1 || { cat "$work/bench.log" >&2; exit 1; }
    jq -r --arg name "$backend $streams" 'def r: . * 10 | round / 10;
      "\($name) \(.completed) | \(.output_throughput | round) | " +
      "\(.median_ttft_ms | r) \(.p99_ttft_ms | r) | \(.median_tpot_ms | r) \(.p99_tpot_ms | r) | " +
      "\(.median_itl_ms | r) \(.p99_itl_ms | r) | \(.client_cpu_s / .duration * 100 | round) %"' \
      "$work/result.json"
    stop
  done
done
