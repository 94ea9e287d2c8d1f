#!/usr/bin/env bash
# Plays sessions of agents (bench/agent_sessions.py) on one GPU against a server of Qwen3.6-35B-A3B's shape with random
# weights in FP8:
#   bench/agent_sessions.sh QUIRE OUT_DIR [FLAGS of quire serve …]
# writes OUT_DIR/{turns,load}.{md,json} and serve.log. `turns` is one session of 20 turns after a first prompt of 30,000
# tokens, each beside its cold time; `load` is 8 sessions of 50 turns beside 8 other requests. It needs python3.
set -euo pipefail
quire=$(realpath "$1") out=$2
shift 2
bench=$(dirname "$(realpath "$0")")
mkdir -p "$out" "$out/shape"
server=
trap '[[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null || true' EXIT

layers=$(printf '"linear_attention", "linear_attention", "linear_attention", "full_attention", %.0s' {1..10})
cat >"$out/shape/config.json" <<JSON
{"architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text", "hidden_size": 2048,
 "intermediate_size": 512, "num_hidden_layers": 40, "num_attention_heads": 16, "num_key_value_heads": 2,
 "head_dim": 256, "vocab_size": 248320, "max_position_embeddings": 262144, "rms_norm_eps": 1e-6,
 "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
 "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
 "linear_conv_kernel_dim": 4, "layer_types": [${layers%, }],
 "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25},
 "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}
JSON

"$quire" serve --model "$out/shape" --load-format dummy --quantization fp8 --max-model-len 65536 --port 0 \
  "$@" >"$out/serve.log" 2>&1 &
server=$!
port=
until port=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' "$out/serve.log" | head -n 1 | grep -oE '[0-9]+$'); do
  kill -0 "$server" 2>/dev/null || { tail -n 3 "$out/serve.log" >&2; exit 1; }
  sleep 0.1
done

# The port is known a moment before connections are accepted.
until (: </dev/tcp/127.0.0.1/"$port") 2>/dev/null; do sleep 0.1; done

play() { # NAME OPTIONS
  local name=$1
  shift
  python3 "$bench/agent_sessions.py" --url "http://127.0.0.1:$port" --json "$out/$name.json" "$@" | tee "$out/$name.md"
}
failed=0
play turns --sessions 1 --turns 20 --first-tokens 30000 --cold || failed=1
play load --sessions 8 --turns 50 --first-tokens 12000 --load 8 \
  --kinds plain:12,stripped:2,edited:2,retried:2,parallel:1,samples:1 || failed=1
exit $failed
