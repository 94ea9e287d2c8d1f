#!/usr/bin/env bash
# Installs the missing packages, builds, and lets the embedded model solve a word problem.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/build.sh
echo
build/quire generate --chat --max-tokens 256 --prompt \
  "Sam collected 28 stickers. Rosa has three times as many stickers as Sam. Ivan has 6 less than Rosa. How many stickers do the three of them have?"
cat <<'EOT'

Next:
  build/quire chat                            talk to the embedded model
  build/quire generate DIR "Once upon a time"
                                              run a Hugging Face checkpoint as it is
  build/quire doctor                          what this machine and build can do
  build/quire --help                          everything else
EOT
