# Sourced by .ci/run and scripts/nightly.sh: runs checks in parts, each with one line in a summary.
#   begin_parts FILE TITLE
#   part NAME COMMAND…      a function, which ends at its first command that fails, or a script; exit
#                           status 77: the part is skipped
#   end_parts               prints the summary and exits with 1 if a part failed
# A part's tests are counted from the JUnit files that scripts/run_tests.sh writes.

begin_parts() {
  summary=$1
  failed_parts=0
  all_tests=0 all_failed=0 all_skipped=0
  mkdir -p "$(dirname "$summary")"
  {
    echo "# $2"
    echo
    echo "Commit $(git describe --always --dirty --abbrev=12), $(date -u +%Y-%m-%d), $(nproc) cores," \
      "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)."
    echo
    echo "| part | result | minutes | tests | failed | skipped |"
    echo "|---|---|---:|---:|---:|---:|"
  } >"$summary"
}

# The sum of an attribute over the JUnit files of $reports: sum_of failures
sum_of() {
  [[ -n $reports ]] || { echo 0; return; }
  # shellcheck disable=SC2086  # a list of files without spaces
  sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" $reports | awk '{ sum += $1 } END { print sum + 0 }'
}

part() {
  local name=$1 start=$SECONDS status=0 result stamp reports minutes
  shift
  stamp=$(mktemp)
  echo "=== $name"
  # `set -e` must hold within the part, which it does not in a list with ||.
  set +e
  (set -e; "$@")
  status=$?
  set -e
  case $status in
    0) result=passed ;;
    77) result=skipped ;;
    *) result=failed failed_parts=$((failed_parts + 1)) ;;
  esac
  reports=$(find build* -maxdepth 1 -name '*.xml' -newer "$stamp")
  rm "$stamp"
  minutes=$(awk -v s=$((SECONDS - start)) 'BEGIN { printf "%.1f", s / 60 }')
  local tests failed skipped
  tests=$(sum_of tests) failed=$(sum_of failures) skipped=$(sum_of skipped)
  all_tests=$((all_tests + tests))
  all_failed=$((all_failed + failed))
  all_skipped=$((all_skipped + skipped))
  echo "| $name | $result | $minutes | $tests | $failed | $skipped |" >>"$summary"
  echo "=== $name: $result after $minutes minutes"
}

end_parts() {
  echo
  cat "$summary"
  echo
  echo "$((all_tests - all_failed - all_skipped)) tests passed, $all_failed tests failed out of" \
    "$all_tests, $all_skipped skipped; $failed_parts parts failed; $((SECONDS / 60)) minutes"
  exit $((failed_parts > 0))
}
