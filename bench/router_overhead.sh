#!/usr/bin/env bash
# Measures what vllm-router costs: 64 streams through it to one server, against 64 streams to the
# server directly, by `quire bench serve` on the same machine. Both alternate, each run with new
# prompts, and the medians are compared. The aim is a ratio of at least 0.97.
#   bench/router_overhead.sh QUIRE VENV [FLAGS of quire serve …]
# VENV has the packages of tests/routers/requirements.txt; `scripts/test.sh --clients -L routers`
# leaves one in build/tests/routers/venv. ROUNDS=5, STREAMS=64, PROMPTS=320, INPUT=128, OUTPUT=128 and
# POLICY=cache_aware and ENDPOINT=/v1/chat/completions in the environment are the defaults. It needs curl.
set -euo pipefail
quire=$(realpath "$1") venv=$2
shift 2
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -r "$work"' EXIT

wait_for() { # NAME PID URL
  for _ in $(seq 6000); do
    curl -sf "$3" >/dev/null 2>&1 && return
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  echo "$1 did not start:" >&2
  tail -n 5 "$work/$1.log" >&2
  exit 1
}
free_port() { python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

direct=$(free_port)
"$quire" serve --port "$direct" --log-level warning "$@" >"$work/serve.log" 2>&1 &
pids+=($!)
wait_for serve "${pids[-1]}" "http://127.0.0.1:$direct/ready"
router=$(free_port)
"$venv/bin/vllm-router" --port "$router" --policy "${POLICY:-cache_aware}" --log-level warning \
  --prometheus-port "$(free_port)" --worker-urls "http://127.0.0.1:$direct" >"$work/router.log" 2>&1 &
pids+=($!)
wait_for router "${pids[-1]}" "http://127.0.0.1:$router/v1/models"

seed=0
run() { # NAME PORT
  seed=$((seed + 1))
  "$quire" bench serve --port "$2" --endpoint "${ENDPOINT:-/v1/chat/completions}" --random-prompts words --ignore-eos \
    --random-input-len "${INPUT:-128}" --random-output-len "${OUTPUT:-128}" --seed $seed \
    --num-prompts "${PROMPTS:-320}" --max-concurrency "${STREAMS:-64}" --log-level error \
    --json "$work/$1.$seed.json" >"$work/bench.log" 2>&1 || { cat "$work/bench.log" >&2; exit 1; }
}
run warm-up "$direct"
run warm-up "$router"
for round in $(seq "${ROUNDS:-5}"); do
  if ((round % 2)); then
    run direct "$direct"
    run router "$router"
  else
    run router "$router"
    run direct "$direct"
  fi
done
python3 - "$work" <<'PYTHON'
import json, pathlib, statistics, sys

folder = pathlib.Path(sys.argv[1])
medians = {}
for way in ("direct", "router"):
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{way}.*.json"))]
    assert all(run["failed"] == 0 for run in runs), f"{way}: requests failed"
    fields = ("output_throughput", "median_ttft_ms", "p99_ttft_ms", "median_itl_ms", "p99_itl_ms")
    medians[way] = {field: statistics.median(run[field] for run in runs) for field in fields}
    print(way, " ".join(f"{field} {value:.2f}" for field, value in medians[way].items()))
print(f"ratio {medians['router']['output_throughput'] / medians['direct']['output_throughput']:.3f}")
PYTHON
