#!/usr/bin/env bash
# Makes the embedded model from nothing: tokenizer, data files, training, evaluation.
# Usage: tools/train/make_model.sh OUTPUT_DIR [train.py flags]
set -euo pipefail
output=${1:?usage: make_model.sh OUTPUT_DIR [train.py flags]}
shift
here=$(dirname "$0")
export TOKENIZERS_PARALLELISM=false
python3 "$here/make_tokenizer.py" --output "$output"
python3 "$here/make_splits.py" --output "$output"
python3 "$here/train.py" --output "$output" "$@"
python3 "$here/evaluate.py" --model "$output" --output "$output/training_log.jsonl"
