#!/usr/bin/env bash
# Makes the embedded model from nothing: tokenizer, data files, training, loss curve.
# Usage: tools/train/make_model.sh OUTPUT_DIR [train.py flags]
set -euo pipefail
output=${1:?usage: make_model.sh OUTPUT_DIR [train.py flags]}
shift
here=$(dirname "$0")
export TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
tokenizer_flags=()
resume=false
for ((i = 1; i <= $#; ++i)); do
  next=$((i + 1))
  if [[ ${!i} == --resume ]]; then resume=true; fi
  if [[ ${!i} == --gsm8k ]]; then tokenizer_flags=(--gsm8k "${!next}"); fi
done
mkdir -p "$output"
if ! $resume; then
  python3 "$here/make_tokenizer.py" --output "$output" "${tokenizer_flags[@]}"
  python3 "$here/make_splits.py" --output "$output"
fi
python3 "$here/train.py" --output "$output" "$@"
python3 "$here/plot_log.py" "$output/training_log.jsonl" "$output/training_loss.svg"
