#!/usr/bin/env bash
# Trains both drafters of a model and measures them, within a time.
# Usage: tools/train/drafters/make_drafters.sh MODEL_DIR OUTPUT_DIR --max-minutes N [flags of both trainings]
# Writes OUTPUT_DIR/eagle3, OUTPUT_DIR/block and OUTPUT_DIR/measured.jsonl.
set -euo pipefail
usage="usage: make_drafters.sh MODEL_DIR OUTPUT_DIR --max-minutes N [flags of both trainings]"
model=${1:?$usage}
output=${2:?$usage}
if [[ ${3:-} != --max-minutes || ! ${4:-} =~ ^[0-9]+(\.[0-9]+)?$ ]]; then
  echo "$usage" >&2
  exit 2
fi
seconds=$(awk -v m="$4" 'BEGIN { printf "%d", 60 * m }')
shift 4
here=$(dirname "$0")
export TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
# The measurement gets a tenth of the time, at least 30 s; the EAGLE-3 head two fifths of the rest, and the
# block drafter, which learns more slowly, three fifths.
block_until=$((seconds - (seconds > 300 ? seconds / 10 : 30)))
eagle3_until=$((block_until * 2 / 5))
# A training's clock begins when its imports are done, for which 10 s are set aside.
minutes_until() { awk -v s="$(($1 - SECONDS - 10))" 'BEGIN { printf "%.2f", (s > 10 ? s : 10) / 60 }'; }

mkdir -p "$output"
echo "EAGLE-3 head, until second $eagle3_until of $seconds"
python3 "$here/train_eagle3.py" --model "$model" --output "$output/eagle3" \
  --max-minutes "$(minutes_until "$eagle3_until")" "$@"
echo "block drafter, from second $SECONDS to $block_until"
python3 "$here/train_block.py" --model "$model" --output "$output/block" \
  --max-minutes "$(minutes_until "$block_until")" "$@"
echo "measurement, from second $SECONDS on"
rm -f "$output/measured.jsonl"
python3 "$here/measure.py" --model "$model" --drafter "$output/eagle3" --drafter "$output/block" \
  --output "$output/measured.jsonl"
echo "done after $SECONDS s"
