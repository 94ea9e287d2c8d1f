#!/usr/bin/env bash
# Trains the embedded model, its two drafters and the tiny DeepSeek-V2, and measures them.
# Usage: tools/train/make_fixtures.sh OUT [--model-minutes N] [--rest-minutes N] [--from DIR] [--work DIR] [--tiny]
#   --model-minutes N   trains the embedded model for N minutes (7); 0 takes it from DIR
#   --rest-minutes N    then trains drafters and DeepSeek, side by side, for N minutes (5); 0 leaves them out
#   --from DIR          the folder that holds model.tgz.* of an earlier call
#   --tiny              a try on a CPU: few steps of small models
# Writes OUT/model.tgz.* and OUT/rest.tgz.*, in parts of at most 15 MiB, also if a training fails. Each call takes about
# a minute more than its trainings. `cat OUT/model.tgz.* | tar xz -C DIR` unpacks them.
set -euo pipefail
usage() { sed -n '3,8s/^# //p' "$0" >&2; exit 2; }
out=${1:-}
[[ $out && $out != -* ]] || usage
shift
model_minutes=7 rest_minutes=5 from= work=/tmp/quire-fixtures tiny=false
while (($#)); do
  case $1 in
    --model-minutes) model_minutes=${2:?} && shift ;;
    --rest-minutes) rest_minutes=${2:?} && shift ;;
    --from) from=$(realpath "${2:?}") && shift ;;
    --work) work=${2:?} && shift ;;
    --tiny) tiny=true ;;
    *) usage ;;
  esac
  shift
done
mkdir -p "$out" "$work"
out=$(realpath "$out") here=$(realpath "$(dirname "$0")")
committed=$here/../../models
model=$work/quire-abacus deepseek=$work/quire-abacus-deepseek
export TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-4}
trains=() deepseek_trains=() model_trains=(--log-every 200) drafts=() workers=5 measures=() scores=()
if $tiny; then
  trains=(--steps 8 --tokens-per-step 1024 --num-workers 0)
  model_trains=(--hidden-size 64 --context 1024 --log-every 4)
  deepseek_trains=(--context 1024)
  drafts=(--context 1024 --warmup-steps 4 --vocabulary-tokens 4000)
  measures=(--num-questions 4 --max-tokens 8)
  scores=(--num-questions 4 --max-tokens 8)
fi

# Folders are packed as they are in models/.
pack() {
  local name=$1
  shift
  rm -f "$out/$name.tgz".*
  (cd "$work" && tar cz -- "$@" 2>/dev/null | split -b 15M - "$out/$name.tgz.") || true
  ls -l "$out"
}
# No phase outlives its minutes by more than one.
bounded() { timeout --kill-after 10 "$(awk -v m="$1" 'BEGIN { printf "%d", 60 * m + 60 }')" "${@:2}"; }
begin_model() {
  mkdir -p "$1"
  cp "$committed"/quire-abacus/{tokenizer,tokenizer_config}.json "$committed"/quire-abacus/{heldout,shots}.jsonl "$1"
}

if [[ $model_minutes != 0 ]]; then
  begin_model "$model"
  bounded "$model_minutes" python3 "$here/train.py" --output "$model" --max-minutes "$model_minutes" \
    "${trains[@]}" "${model_trains[@]}" || echo "the model's training ended with $?: its last weights are kept"
  pack model quire-abacus
  rm -f "$work/model_scores.jsonl"
  bounded 1 python3 "$here/evaluate.py" --model "$model" --sets "$model" --output "$work/model_scores.jsonl" \
    --show-misses --only heldout-0-shot --only heldout-chat --only questions "${scores[@]}" || echo "evaluation ended with $?"
  bounded 0 python3 "$here/evaluate.py" --model "$model" --sets "$model" --output "$work/model_scores.jsonl" \
    --only heldout-8-shot --num-questions 100 "${scores[@]}" || echo "evaluation ended with $?"
  cp "$work/model_scores.jsonl" "$out" || true
else
  cat "${from:?--model-minutes 0 needs --from DIR}"/model.tgz.* | tar xz -C "$work"
fi
if [[ $rest_minutes != 0 ]]; then
  begin_model "$deepseek"
  eagle_trains=("${drafts[@]}") block_trains=("${drafts[@]:0:4}")
  bounded "$rest_minutes" python3 "$here/train.py" --output "$deepseek" --architecture deepseek_v2 --only-problems \
    --num-workers $workers --max-minutes "$rest_minutes" --log-every 200 "${trains[@]}" \
    "${deepseek_trains[@]}" >"$work/deepseek.log" 2>&1 &
  bounded "$rest_minutes" python3 "$here/drafters/train_eagle3.py" --model "$model" --output "$model/eagle3" \
    --num-workers $workers --max-minutes "$rest_minutes" "${trains[@]}" "${eagle_trains[@]}" >"$work/eagle3.log" 2>&1 &
  bounded "$rest_minutes" python3 "$here/drafters/train_block.py" --model "$model" --output "$model/dflash" \
    --num-workers $workers --max-minutes "$rest_minutes" "${trains[@]}" "${block_trains[@]}" >"$work/dflash.log" 2>&1 &
  wait
  tail -n 3 "$work"/{deepseek,eagle3,dflash}.log
  pack rest quire-abacus/eagle3 quire-abacus/dflash quire-abacus-deepseek deepseek.log eagle3.log dflash.log
  rm -f "$work/measured.jsonl"
  bounded 0.3 python3 "$here/drafters/measure.py" --model "$model" --drafter "$model/eagle3" --drafter "$model/dflash" \
    --output "$work/measured.jsonl" "${measures[@]}" || echo "measurement ended with $?"
  bounded 0.3 python3 "$here/evaluate.py" --model "$deepseek" --sets "$model" --output "$work/deepseek_scores.jsonl" \
    --only heldout-0-shot "${scores[@]}" || echo "evaluation ended with $?"
  cp "$work"/{measured,deepseek_scores}.jsonl "$out" || true
fi
echo "done after $SECONDS s"
