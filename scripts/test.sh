#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests; closes with ctest's summary.
#
# usage: scripts/test.sh [--preset NAME] [--label NAME]... [--nightly] [-R REGEX] [-E REGEX] [-j N]
#   --preset NAME  dev, release (the default), asan or tsan
#   --label NAME   only the tests with this label (or one of these), and what they are built from
#   --nightly      the tests with the label nightly, and no others; their shares are not checked
#   -R -E -j       as for ctest: by name, without these names, in parallel
#   --help         this text
# CAIRN_SEED=N replays a randomised test from the seed that its failure printed. The seconds that
# each label may take are in scripts/shares.txt.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=release
labels=()
nightly=(-LE '^nightly$')
selection=()
while (($# > 0)); do
  case $1 in
    --preset | --label | -R | -E | -j) need_value "$1" "$@" ;;&
    --preset) preset=$2 && shift ;;
    --label) labels+=("$2") && shift ;;
    --nightly) nightly=(-L '^nightly$') ;;
    -R | -E | -j) selection+=("$1" "$2") && shift ;;
    --help | -h)
      print_help
      exit 0
      ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  shift
done
case $preset in
  dev | release | asan | tsan) ;;
  *) die "there is no preset '$preset': use dev, release, asan or tsan" ;;
esac

"$cairn_root/scripts/setup.sh"
built=()
if ((${#labels[@]} > 0)); then
  for label in "${labels[@]}"; do built+=(--label "$label"); done
  selection+=(-L "^($(IFS='|' && printf '%s' "${labels[*]}"))\$")
fi
"$cairn_root/scripts/build.sh" "$preset" "${built[@]}"

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

output=$(mktemp)
trap 'rm -f "$output"' EXIT
result=0
ctest --test-dir "$cairn_root/build/$preset" --output-on-failure --no-tests=error \
  "${nightly[@]}" "${selection[@]}" | tee "$output" || result=$?

# ctest closes with a line a label, such as "unit = 12.34 sec*proc (5 tests)".
check_shares() {
  awk -v preset="$preset" '
    FNR == NR && /^# label/ { for (i = 3; i <= NF; ++i) if ($i == preset) column = i - 1; next }
    FNR == NR { if (!/^#/ && NF) share[$1] = $column; next }
    $2 == "=" && $4 == "sec*proc" {
      if (!($1 in share)) { bad = 1; print "label " $1 " has no share in scripts/shares.txt" }
      else if ($3 > share[$1]) { bad = 1; print $1 " took " $3 " s of its " share[$1] " s" }
    }
    END { exit bad }' "$cairn_root/scripts/shares.txt" "$output"
}
if [[ ${nightly[0]} == -LE ]] && ! overrun=$(check_shares); then
  say "$overrun"
  result=1
fi
exit "$result"
