#!/usr/bin/env bash
# Installs the missing packages, builds, downloads a small model and lets it answer. Without a network,
# the model in the binary solves a word problem instead.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh
status=0
build/quire pull smollm2 >/dev/null || status=$?
if ((status > 128)); then # a signal, such as Ctrl-C, ends the script too
  exit "$status"
fi
if ((status == 0)); then
  model=smollm2
  question="What is the capital of France?"
else
  echo "going on with the embedded model, which solves word problems" >&2
  model=embedded
  question="Sam collected 28 stickers. Rosa has three times as many stickers as Sam. Ivan has 6 less than Rosa. How many stickers do the three of them have?"
fi
printf '\n%s\n' "$question"
build/quire generate $model "$question"
cat <<EOT

Next:
  build/quire chat $model      talk with it
  build/quire serve $model     serve it, and a page to chat at http://127.0.0.1:8000
  build/quire --help             everything else
EOT
