#!/usr/bin/env bash
# Makes a model from nothing: tokenizer, data files, training, loss curve.
# Usage: tools/train/make_model.sh OUTPUT_DIR [--tokenizer-of MODEL_DIR] [train.py flags]
# With --tokenizer-of the tokenizer, the held-out problems and the shots are copied from MODEL_DIR.
set -euo pipefail
output=${1:?usage: make_model.sh OUTPUT_DIR [--tokenizer-of MODEL_DIR] [train.py flags]}
shift
here=$(dirname "$0")
export TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
flags=()
tokenizer_flags=()
copied_from=
resume=false
while (($#)); do
  case $1 in
    --tokenizer-of)
      copied_from=${2:?--tokenizer-of needs the folder of a model}
      shift 2
      continue
      ;;
    --gsm8k) tokenizer_flags=(--gsm8k "${2:?--gsm8k needs a file}") ;;
    --resume) resume=true ;;
  esac
  flags+=("$1")
  shift
done
mkdir -p "$output"
if ! $resume; then
  if [[ $copied_from ]]; then
    cp "$copied_from"/{tokenizer,tokenizer_config}.json "$copied_from"/{heldout,shots}.jsonl "$output"
  else
    python3 "$here/make_tokenizer.py" --output "$output" "${tokenizer_flags[@]}"
    python3 "$here/make_splits.py" --output "$output"
  fi
fi
python3 "$here/train.py" --output "$output" "${flags[@]}"
python3 "$here/plot_log.py" "$output/training_log.jsonl" "$output/training_loss.svg"
