#!/usr/bin/env bash
# Runs every `build/quire …` command that README.md, docs/ and the embedded model's card show in a
# ```sh block, from the root of the source, because a reader copies them. Commands that need a
# checkpoint of the reader are in ```text blocks. Omitted are benchmarks, which take minutes,
# `pull`, which needs a network, and `serve`, which does not end (serving_commands.sh runs it);
# evaluations ask fewer questions here. The model folder is empty, so that the embedded model speaks.
#   readme_commands.sh BINARY SOURCE_DIR
set -euo pipefail
binary=$1
cd "$2"
num_run=0
QUIRE_MODELS=$(mktemp -d)
export QUIRE_MODELS
trap 'rm -rf "$QUIRE_MODELS"' EXIT

run_command() {
  local command=$1 output short
  [[ $command == build/quire\ * && $command != build/quire\ @(bench|pull|serve)* ]] || return 0
  echo "\$ $command"
  short=$(sed -E 's/(--num-questions) [0-9]+/\1 4/' <<<"$command")
  # `chat` gets a command to quit; the others do not read input.
  if ! output=$(timeout 60 bash -c "${short//build\/quire/\"\$0\"}" "$binary" <<<"/quit" 2>&1); then
    printf '%s\n%s\n' "$output" "does not work, as $file shows it" >&2
    exit 1
  fi
  num_run=$((num_run + 1))
}

for file in README.md docs/*.md models/quire-abacus/README.md; do
  in_block=no
  command=
  while IFS= read -r line; do
    if [[ $in_block == no ]]; then
      [[ $line != '```sh' ]] || in_block=yes
    elif [[ $line == '```' ]]; then
      [[ -z $command ]] || { echo "$file: no end of: $command" >&2; exit 1; }
      in_block=no
    else
      command+=${command:+$'\n'}$line
      # A line that ends inside quotes or with a backslash continues in the next line.
      if [[ $command != *\\ ]] && bash -n <<<"$command" 2>/dev/null; then
        run_command "$command"
        command=
      fi
    fi
  done <"$file"
done

echo "$num_run commands work"
[[ $num_run -gt 0 ]]
