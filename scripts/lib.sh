# Sourced by the other scripts: their words and their build.
# shellcheck shell=bash

cairn_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cairn_script=$(basename "$0")

say() { printf '%s: %s\n' "$cairn_script" "$*" >&2; }

die() {
  say "$*"
  exit 2
}

# The comment block at the head of the script is its help.
print_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# need_value OPTION "$@": the option must be followed by a value.
need_value() { (($# >= 3)) || die "$1 needs a value; see --help"; }

# configure_preset PRESET: when that is due.
configure_preset() {
  local preset=$1 folder="$cairn_root/build/$1" log
  if [[ -f $folder/build.ninja && ! $cairn_root/CMakePresets.json -nt $folder/build.ninja ]]; then
    return 0
  fi
  log=$(mktemp)
  if ! (cd "$cairn_root" && cmake --preset "$preset") >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "cmake --preset $preset failed"
    return 1
  fi
  rm -f "$log"
  # A configuration that came out the same is not written again; its age says it was looked at.
  touch "$folder/build.ninja"
}

# build_preset PRESET [TARGET...]: configures and builds, all output on stderr, and says nothing
# when there is nothing to do.
build_preset() {
  local folder="$cairn_root/build/$1"
  configure_preset "$1" || return 1
  shift
  if [[ $(ninja -C "$folder" -n "$@" 2>&1) != *"no work to do"* ]]; then
    ninja -C "$folder" "$@" >&2
  fi
}
