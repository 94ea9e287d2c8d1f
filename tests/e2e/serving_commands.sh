#!/usr/bin/env bash
# Runs every command that docs/serving.md shows in a ```bash block, in a temporary folder: servers
# in the background, each until the next one begins, and the other commands one by one. Then it
# compares the page's flags and metrics, the Grafana dashboard and the alerts with the binary.
#   serving_commands.sh BINARY SOURCE_DIR
# If curl or openssl is missing it exits with 77, which CTest reports as skipped.
set -euo pipefail
binary=$(realpath "$1")
source_dir=$(realpath "$2")
page=$source_dir/docs/serving.md
for tool in curl openssl; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed" >&2; exit 77; }
done

work_dir=$(mktemp -d)
server=
num_run=0
cleanup() {
  if [[ -n $server ]]; then
    kill -KILL "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work_dir"
}
trap cleanup EXIT
cd "$work_dir"
mkdir build deploy models
export QUIRE_MODELS=$work_dir/models  # empty, so that the embedded model speaks
ln -s "$binary" build/quire
# The service's binary is not installed on this machine.
sed "s#/usr/local/bin/quire#$binary#" "$source_dir/deploy/quire.service" >deploy/quire.service

fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

stop_server() {
  [[ -n $server ]] || return 0
  kill -TERM "$server"
  local status=0
  wait "$server" || status=$?
  server=
  [[ $status == 0 ]] || fail "a server that SIGTERM stopped ended with $status" "$(cat log.txt)"
}

# The page's port may be in use on this machine, so a free one replaces it from here on.
port=0
start_server() {
  stop_server
  : >out.txt  # both are of the last server, until the next one has opened them
  : >log.txt
  bash -c "exec ${1//--port 8000/--port 0}" >out.txt 2>log.txt &
  server=$!
  for _ in {1..600}; do
    # With --log-format json, the line is an object of the log.
    port=$(sed -nE 's/^serving .*:([0-9]+)$/\1/p; s/.*"message":"\[server\] serving".*:([0-9]+)"}$/\1/p' \
      out.txt log.txt)
    [[ -z $port ]] || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  fail "does not serve: $1" "$(cat out.txt log.txt)"
}

run_command() {
  echo "\$ $1"
  num_run=$((num_run + 1))
  if [[ $1 == build/quire\ serve* ]]; then
    start_server "$1"
    return
  fi
  if ! command -v "${1%% *}" >/dev/null; then
    echo "(not here)"
    return
  fi
  local output
  output=$(timeout 60 bash -c "set -eo pipefail; ${1//:8000/:$port}" 2>&1 </dev/null) ||
    fail "$output" "does not work, as $page shows it"
}

in_block=no
command=
while IFS= read -r line <&3; do
  if [[ $in_block == no ]]; then
    [[ $line != '```bash' ]] || in_block=yes
  elif [[ $line == '```' ]]; then
    [[ -z $command ]] || fail "no end of: $command"
    in_block=no
  else
    command+=${command:+$'\n'}$line
    # A line that ends inside quotes or with a backslash continues in the next line.
    if [[ $command != *\\ ]] && bash -n <<<"$command" 2>/dev/null; then
      run_command "$command"
      command=
    fi
  fi
done 3<"$page"
[[ $num_run -gt 0 ]] || fail "$page shows no commands"
for path in *; do
  [[ $path == @(build|deploy|models|out.txt|log.txt) ]] ||
    fail "the commands of $page leave $path in the source's root; build/ is ignored by git"
done

if command -v haproxy >/dev/null; then
  cat build/cert.pem build/key.pem >build/haproxy.pem
  sed -n '/^```haproxy$/,/^```$/p' "$page" | sed '/^```/d' |
    sed "s#/etc/haproxy/quire.pem#$PWD/build/haproxy.pem#" >build/haproxy.cfg
  haproxy -c -f build/haproxy.cfg >haproxy.txt 2>&1 || fail "$(cat haproxy.txt)"
  echo "haproxy accepts the configuration of $page"
else
  echo "(haproxy is not here: its configuration in $page is not checked)"
fi

echo "what the page says of flags and metrics"
curl -sSf "http://127.0.0.1:$port/metrics" >metrics.txt
start_server "build/quire serve --models build/models.ini --port 8000"
curl -sSf "http://127.0.0.1:$port/metrics" >>metrics.txt  # no model is loaded: only its own metrics
awk '$1 == "#" && $2 == "TYPE" { print $3 }' metrics.txt | sort -u >served.txt
grep -oE '`(vllm:|quire_|process_)[a-z0-9_]+`' "$page" | tr -d '`' | sort -u >documented.txt
difference=$(diff served.txt documented.txt) ||
  fail "the metrics (<: served, >: in $page) differ:" "$difference"
for file in grafana-dashboard.json prometheus-alerts.yml; do
  grep -oE '(vllm:|quire_|process_)[a-z0-9_]+' "$source_dir/deploy/$file" |
    sed -E 's/_(bucket|count|sum)$//' | sort -u >read.txt
  missing=$(comm -13 served.txt read.txt)
  [[ -z $missing ]] || fail "deploy/$file reads what is not served:" "$missing"
done
if command -v promtool >/dev/null; then
  promtool check rules "$source_dir/deploy/prometheus-alerts.yml" >promtool.txt ||
    fail "$(cat promtool.txt)"
  grep -v '^\(# \(HELP\|TYPE\) \)\?vllm:' metrics.txt >own.txt
  promtool check metrics <own.txt >promtool.txt 2>&1 || fail "$(cat promtool.txt)"
else
  echo "(promtool is not here: metrics_test.cc has its rules)"
fi

build/quire help serve >help.txt
while read -r flag; do
  grep -qE -- "(^|[ ,])$flag([ ,=]|\$)" help.txt || fail "$page has $flag; quire help serve does not"
done < <(grep -oE -- '`--[a-z0-9-]+' "$page" | tr -d '`' | sort -u)

stop_server
echo "$num_run commands work"
