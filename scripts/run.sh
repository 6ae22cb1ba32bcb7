#!/usr/bin/env bash
# Builds Cairn, starts a cairnd in a temporary directory, replays a trace of requests against it
# with every byte checked, prints the report, stops the daemon and leaves nothing behind.
#
# usage: scripts/run.sh [--trace FILE] [--json] [--set key=value]... [options of cairn replay]
#   --trace FILE     the trace to replay; without it one is made by `cairn trace gen`
#   --json           prints the report as JSON, alone on stdout
#   --set key=value  a setting of cairnd, as in conf/cairnd.toml; may be repeated
#   --help           this text
# All other options go to `cairn replay`: --block-bytes 256KiB, --limit N, --clients K, --no-verify.
# The exit code is that of `cairn replay`: 0 when every byte came back right.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ready_within_s=30
stop_within_s=15
bin=$cairn_root/build/release/bin
trace=""
settings=()
replay_options=()

while (($# > 0)); do
  case $1 in
    --trace | --set) need_value "$1" "$@" ;;&
    --trace) trace=$2 && shift ;;
    --trace=*) trace=${1#*=} ;;
    --set) settings+=("$2") && shift ;;
    --set=*) settings+=("${1#*=}") ;;
    --help | -h)
      print_help
      exit 0
      ;;
    *) replay_options+=("$1") ;;
  esac
  shift
done
for setting in "${settings[@]}"; do
  [[ $setting == ?*=* ]] || die "--set '$setting' is not key=value"
done
if [[ -n $trace ]]; then
  [[ -f $trace && -r $trace ]] || die "--trace $trace: no such file, or not readable"
fi

"$cairn_root/scripts/setup.sh"
build_preset release cairnd cairn

folder=""
pool=""
daemon=""
work=""

# stop PID: asks, waits, then insists.
# shellcheck disable=SC2317  # it is reached through the trap
stop() {
  local pid=$1 tick
  [[ -n $pid ]] || return 0
  kill -TERM "$pid" 2>/dev/null || true
  for ((tick = 0; tick < stop_within_s * 20; ++tick)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}

# shellcheck disable=SC2317  # it is reached through the trap
clean_up() {
  trap '' INT TERM HUP
  stop "$work"
  stop "$daemon"
  if [[ -n $pool ]]; then rm -rf "$pool"; fi
  if [[ -n $folder ]]; then rm -rf "$folder"; fi
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# run COMMAND...: as a child that can be stopped at once when this script is.
run() {
  local result=0
  "$@" &
  work=$!
  wait "$work" || result=$?
  work=""
  return "$result"
}

# is_set KEY: the caller chose it; then it stays as it is.
is_set() {
  local setting
  for setting in "${settings[@]}"; do
    if [[ $setting == "$1="* ]]; then return 0; fi
  done
  return 1
}

# use KEY VALUE: unless the caller chose another.
use() { if ! is_set "$1"; then settings+=("$1=$2"); fi; }

value_of() {
  local setting value=""
  for setting in "${settings[@]}"; do
    if [[ $setting == "$1="* ]]; then value=${setting#*=}; fi
  done
  printf '%s' "$value"
}

start_daemon() {
  local options=() setting tick
  for setting in "${settings[@]}"; do options+=(--set "$setting"); done
  : >"$folder/log"
  "$bin/cairnd" --config "$cairn_root/conf/cairnd.toml" "${options[@]}" \
    >"$folder/out" 2>"$folder/log" &
  daemon=$!
  for ((tick = 0; tick < ready_within_s * 50; ++tick)); do
    if grep -qE '^ready( |$)' "$folder/log"; then return 0; fi
    if ! kill -0 "$daemon" 2>/dev/null; then break; fi
    sleep 0.02
  done
  local result=1
  if ! kill -0 "$daemon" 2>/dev/null; then wait "$daemon" || result=$?; fi
  say "cairnd did not get ready; the end of its log:"
  tail -n 20 "$folder/log" >&2
  return "$result"
}

folder=$(mktemp -d "${TMPDIR:-/tmp}/cairn-run.XXXXXX")
if ! is_set pool.dir; then pool=$(mktemp -d /dev/shm/cairn-run.XXXXXX); fi
use data_dir "$folder/data"
use pool.dir "$pool"
use listen.unix "$folder/cairnd.sock"
use admin.listen 127.0.0.1:0

start_daemon
if [[ -z $trace ]]; then
  trace=$folder/trace.jsonl
  run "$bin/cairn" trace gen >"$trace"
fi
say "cairnd is ready; replaying ${trace#"$folder"/}"
result=0
server=unix:$(value_of listen.unix)
run "$bin/cairn" replay "$trace" --server "$server" "${replay_options[@]}" || result=$?
if ((result != 0)) && ! kill -0 "$daemon" 2>/dev/null; then
  say "cairnd has ended; the end of its log:"
  tail -n 20 "$folder/log" >&2
fi
exit "$result"
