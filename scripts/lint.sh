#!/usr/bin/env bash
# Checks the form of the sources: clang-format over all of them, shellcheck over the scripts, and
# clang-tidy over the .cc files that changed last, as they are compiled in build/release.
#
# usage: scripts/lint.sh [--since COMMIT] [--all] [--seconds N]
#   --since COMMIT  clang-tidy only over what differs from COMMIT
#   --all           clang-tidy over every file, however long it takes
#   --seconds N     clang-tidy starts no file after N seconds (default 240): it goes from the file
#                   changed last to the one changed first and says how many were left
#   --help          this text
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

options=()
while (($# > 0)); do
  case $1 in
    --since | --seconds)
      need_value "$1" "$@"
      options+=("$1" "$2")
      shift
      ;;
    --all) options+=(--seconds 86400) ;;
    --help | -h)
      print_help
      exit 0
      ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  shift
done
cd "$cairn_root"
"$cairn_root/scripts/setup.sh" --lint
configure_preset release

result=0
git ls-files -z -- '*.h' '*.cc' | xargs -0 -r clang-format --dry-run -Werror || result=1
git ls-files -z -- '*.sh' .ci/run | xargs -0 -r shellcheck || result=1
python3 scripts/clang_tidy.py --build build/release "${options[@]}" || result=1
exit "$result"
