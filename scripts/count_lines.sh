#!/usr/bin/env bash
# Prints the lines of code per folder, blank and comment lines apart, of the tracked files that end
# in .cc .h .cu .cuh .py; the size of models/; and the stripped size of build/quire if it is built.
# With --base COMMIT, each figure is "before → after": the commit against the working tree.
#   scripts/count_lines.sh [--base COMMIT]
# A comment line has nothing but a comment; a Python docstring counts as a comment. Text of others
# (patches/, and any folder named third_party) has a row of its own, with all its lines as code.
set -euo pipefail
cd "$(dirname "$0")/.."

base=
if [[ "${1:-}" == --base ]]; then
  base=$(git rev-parse --verify --quiet "${2:?--base needs a commit}^{commit}") ||
    { echo "count_lines: $2 is not a commit of this repository; expected one" >&2; exit 1; }
elif [[ $# -gt 0 ]]; then
  sed -n '2,/^set /{s/^# //p}' "$0"; [[ $1 == --help ]] && exit || exit 2
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources='\.(cc|h|cu|cuh|py|patch)$'
megabytes() { awk '{ sum += $1 } END { printf "%.1f", sum / 1e6 }'; }

# count FOLDER <FILES: prints "area code comments blank files" for each area.
count() {
  (cd "$1" && tr '\n' '\0' | xargs -0 awk '
    FNR == 1 {
      python = FILENAME ~ /\.py$/; inside = 0; area = "other"
      top = FILENAME; sub(/\/.*/, "", top)
      if (top ~ /^(src|include)$/) area = "src+include"
      if (top ~ /^(tests|tools|bench|fuzz)$/) area = top
      if (FILENAME ~ /(^|\/)third_party\/|^patches\//) area = "third party"
      files[area]++
    }
    { line = $0; gsub(/^[ \t\r]+|[ \t\r]+$/, "", line) }
    area == "third party" { code[area]++; next }
    line == "" { blank[area]++; next }
    inside {  # a comment of several lines
      comments[area]++
      if (python ? index(line, quotes) : line ~ /\*\//) inside = 0
      next
    }
    python && line ~ /^#/ || !python && line ~ /^\/\// { comments[area]++; next }
    python && line ~ /^[rR]?("""|\047\047\047)/ {
      comments[area]++
      sub(/^[rR]/, "", line); quotes = substr(line, 1, 3); inside = !index(substr(line, 4), quotes)
      next
    }
    !python && line ~ /^\/\*/ && line !~ /\*\/./ { comments[area]++; inside = line !~ /\*\//; next }
    { code[area]++ }
    END {
      for (a in files) print a "\t" code[a] + 0 "\t" comments[a] + 0 "\t" blank[a] + 0 "\t" files[a]
    }')
}

git ls-files | grep -E "$sources" | while read -r file; do [[ ! -e $file ]] || echo "$file"; done |
  count . >"$work/after"
models=$(git ls-files models | xargs -d '\n' stat -c %s 2>/dev/null | megabytes)
if [[ -n $base ]]; then
  mkdir "$work/tree"
  git ls-tree -r --name-only "$base" | grep -E "$sources" >"$work/names"
  xargs -d '\n' git archive "$base" -- <"$work/names" | tar -x -C "$work/tree"
  count "$work/tree" <"$work/names" >"$work/before"
  models="$(git ls-tree -r -l "$base" models | awk '{ print $4 }' | megabytes) → $models"
fi
awk -F '\t' -v base="$base" '
  FILENAME ~ /before$/ { for (i = 2; i <= 5; ++i) before[$1, i] = $i; areas[$1]; next }
  { for (i = 2; i <= 5; ++i) after[$1, i] = $i; areas[$1] }
  function cell(a, i) { return (base == "" ? "" : before[a, i] + 0 " → ") after[a, i] + 0 }
  END {
    format = "%-12s %18s %18s %18s %18s\n"
    printf format, "", "code", "comments", "blank", "files"
    n = split("src+include,tests,tools,bench,fuzz,other,third party", order, ",")
    for (k = 1; k <= n; ++k) if ((a = order[k]) in areas)
      printf format, a, cell(a, 2), cell(a, 3), cell(a, 4), cell(a, 5)
  }' $([[ -z $base ]] || echo "$work/before") "$work/after"
echo "models/: $models MB"
if [[ -x build/quire ]]; then
  strip -o "$work/quire" build/quire
  echo "build/quire $(grep -q CUDA_COMPILER build/CMakeFiles/rules.ninja || echo without CUDA), stripped: $(stat -c %s "$work/quire" | megabytes) MB"
fi
