#!/usr/bin/env bash
# Configures and builds one preset; says nothing when there is nothing to do.
#
# usage: scripts/build.sh [PRESET] [--label NAME]...
#   PRESET        dev, release (the default), asan or tsan
#   --label NAME  only what the tests with this label (or one of these) are built from
#   --help        this text
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

preset=release
labels=()
while (($# > 0)); do
  case $1 in
    --label)
      need_value "$1" "$@"
      labels+=(--label "$2")
      shift
      ;;
    --help | -h)
      print_help
      exit 0
      ;;
    dev | release | asan | tsan) preset=$1 ;;
    *) die "'$1' is neither a preset (dev, release, asan, tsan) nor an option; see --help" ;;
  esac
  shift
done

targets=()
if ((${#labels[@]} > 0)); then
  configure_preset "$preset"
  words=$("$cairn_root/scripts/test_targets.py" "$cairn_root/build/$preset" "${labels[@]}")
  read -r -d '' -a targets <<<"$words" || true
fi
build_preset "$preset" "${targets[@]}"
