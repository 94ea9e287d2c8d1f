#!/usr/bin/env bash
# From a fresh clone to an answer: installs what is missing, builds, and lets the embedded model
# solve a word problem.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh
echo
build/quire generate --chat --max-tokens 256 --prompt \
  "Maria has 14 apples. She buys 3 bags with 6 apples each and gives 5 apples to her brother. How many apples does Maria have now?"
cat <<'EOT'

Next:
  build/quire chat                            talk to the embedded model
  build/quire generate --model DIR --prompt "Once upon a time"
                                              run a Hugging Face checkpoint as it is
  build/quire doctor                          what this machine and build can do
  build/quire --help                          everything else
EOT
