#!/usr/bin/env bash
# Measures the embedded model's accuracy on its held-out problems over `quire serve`, 64 requests at
# a time, counted as in `quire eval gsm8k`. Prints one line per decode backend. Needs jq and curl.
#   bench/gsm8k_served_accuracy.sh [QUIRE] [BACKEND]...
# DEVICE=cpu uses the CPU.
set -euo pipefail
cd "$(dirname "$0")/.."
quire=${1:-build/quire}
shift || true
[[ $# -gt 0 ]] || set -- xqa flashinfer cudnn native auto
problems=models/quire-abacus/heldout.jsonl
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -r "$work"' EXIT

for backend in "$@"; do
  "$quire" serve --port 0 --device "${DEVICE:-cuda}" --decode-attention-backend "$backend" \
    >"$work/serve.log" 2>&1 &
  server=$!
  until url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$work/serve.log"); do
    kill -0 "$server" || { cat "$work/serve.log" >&2; exit 1; }
    sleep 0.1
  done
  # A curl command's arguments for each problem; @json quotes as curl's files of options do.
  jq -r --arg url "$url" --arg work "$work" '
    {prompt: "Question: \(.question)\nAnswer:", max_tokens: 512, temperature: 0,
     stop: ["Question", "Assistant:", "<|separator|>"]} as $body |
    "url = \($url)/v1/completions\noutput = \($work)/\(input_line_number).json\n" +
    "header = \"content-type: application/json\"\ndata = \($body | @json | @json)\nnext"' \
    "$problems" | sed '$d' >"$work/calls"
  curl --silent --parallel --parallel-immediate --parallel-max 64 --config "$work/calls" 2>"$work/curl.log"
  for ((i = 1; i <= $(wc -l <"$problems"); ++i)); do cat "$work/$i.json"; done |
    jq -rn --arg name "$backend" --slurpfile problems "$problems" '
      def value: gsub(","; "") | [scan("[0-9]+")] | last;
      [inputs.choices[0].text | value] as $got | [$problems[].answer | value] as $expected |
      [range($expected | length) | select($got[.] == $expected[.])] | length |
      "\($name): \(.) of \($expected | length)"'
  kill "$server"
  wait "$server" 2>/dev/null || true
  server=
  rm "$work"/*.json
done
