#!/usr/bin/env bash
# Compares the throughput of a model's shape without drafts, with a fixed number, and with the
# adaptive number, at synthetic acceptance. All weights are random. Prints output tokens/s.
#   bench/speculation_speed.sh TARGET_CONFIG DRAFTER_CONFIG [QUIRE]
# DRAFTER_CONFIG is empty for METHOD mtp: the target has the drafter's layer.
# METHOD (eagle3), DRAFTS (4), LENGTHS (3.0) and STREAMS ("1 8 32 64") in the environment change the
# measurement; FLAGS are passed to every run.
set -euo pipefail
target=$1
drafter=$2
quire=${3:-build/quire}

speed() { # STREAMS [FLAG]...
  local streams=$1
  shift
  "$quire" bench throughput --model "$target" --load-format dummy --max-model-len 2048 --device cuda \
    --num-prompts "$streams" --input-len 128 --output-len 512 ${FLAGS:-} "$@" 2>/dev/null |
    sed -n 's/.* \([0-9.,]*\) output tokens\/s.*/\1/p'
}
config() { # LENGTH ADAPTIVE
  echo "{\"method\": \"${METHOD:-eagle3}\", ${drafter:+\"model\": \"$drafter\",}
    \"num_speculative_tokens\": ${DRAFTS:-4}, \"rejection_sample_method\": \"synthetic\",
    \"synthetic_acceptance_length\": $1, \"enable_adaptive_verification\": $2}"
}

for streams in ${STREAMS:-1 8 32 64}; do
  off=$(speed "$streams")
  for length in ${LENGTHS:-3.0}; do
    fixed=$(speed "$streams" --speculative-config "$(config "$length" false)")
    adaptive=$(speed "$streams" --speculative-config "$(config "$length" true)")
    echo "$streams streams, accepted length $length: off $off, fixed ${fixed:-failed}, adaptive ${adaptive:-failed}"
  done
done
