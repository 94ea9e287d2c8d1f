#!/usr/bin/env bash
# Plays sessions of agents (bench/agent_sessions.py) against a tiny model with recurrent states, with drafts and beside
# other requests: the promise holds. Without a prefix cache it does not, and the script fails.
#   agent_sessions.sh BINARY SOURCE_DIR
set -euo pipefail
binary=$(realpath "$1")
script=$(realpath "$2")/bench/agent_sessions.py
work_dir=$(mktemp -d)
server=
stop() {
  if [[ -n $server ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  server=
}
trap 'stop; rm -r "$work_dir"' EXIT

cat >"$work_dir/config.json" <<'JSON'
{"architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text", "hidden_size": 64, "intermediate_size": 112,
 "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
 "max_position_embeddings": 8192, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8,
 "linear_value_head_dim": 12, "linear_conv_kernel_dim": 4,
 "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
 "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}
JSON

play() { # FLAGS of quire serve: prints the script's output, and returns its exit code
  "$binary" serve --model "$work_dir" --load-format dummy --device cpu --threads 2 --port 0 "$@" >"$work_dir/log" 2>&1 &
  server=$!
  local port=
  until port=$(grep -oE '^serving .*:[0-9]+$' "$work_dir/log" | grep -oE '[0-9]+$'); do
    kill -0 "$server" 2>/dev/null || { cat "$work_dir/log" >&2; exit 2; }
    sleep 0.1
  done
  # The port is known a moment before connections are accepted.
  until (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; do sleep 0.1; done
  local code=0
  python3 "$script" --url "http://127.0.0.1:$port" --sessions 3 --turns 12 --first-tokens 900 --common-tokens 300 \
    --new-tokens 60 --most-new-tokens 400 --answer-tokens 20 --load 1 --load-tokens 100 \
    --kinds plain:3,stripped:1,edited:1,retried:1,parallel:1,samples:1 || code=$?
  stop
  return $code
}

play --speculative-config '{"method":"ngram","num_speculative_tokens":3}'
if play --no-enable-prefix-caching >"$work_dir/output"; then
  echo 'expected a broken promise without a prefix cache; got none:' >&2
  cat "$work_dir/output" >&2
  exit 1
fi
grep -q 'session 0, turn 1 .* expected at most 64; cause disabled' "$work_dir/output"
