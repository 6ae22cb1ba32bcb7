#!/usr/bin/env bash
# Installs what Cairn needs to build, run and be tested on Debian 12. Says nothing and changes
# nothing when all of it is there.
#
# usage: scripts/setup.sh [--lint] [--hugepages SIZE]
#   --lint            the linters too (clang-format, clang-tidy, shellcheck), and clang
#   --hugepages SIZE  reserves SIZE (such as 8GiB) of 2 MiB pages in all and mounts a hugetlbfs, for
#                     a pool.dir on it; without this option the memory of the machine stays as it is
#   --help            this text
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

packages=(
  g++ cmake ninja-build pkg-config ccache git python3
  libboost-dev nlohmann-json3-dev libtomlplusplus-dev libcli11-dev libspdlog-dev libfmt-dev
  prometheus-cpp-dev libssl-dev libisal-dev libxxhash-dev librocksdb-dev libexpected-dev
  liburing-dev libgtest-dev libgmock-dev libbenchmark-dev
)
lint_packages=(clang clang-format clang-tidy shellcheck)
hugepages_mount=/dev/hugepages
hugepages_size=""
huge_page_bytes=$((2 * 1024 * 1024))

need_root() { [[ $(id -u) == 0 ]] || die "$1 needs root: run it as root or with sudo"; }

# Prints each of the packages named that is not installed.
missing_packages() {
  local -A installed=()
  local name state
  while IFS=' ' read -r name state; do
    if [[ $state == installed ]]; then installed[$name]=1; fi
  done < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    if [[ ! -v installed[$name] ]]; then printf '%s\n' "$name"; fi
  done
}

check_debian() {
  local id="" version=""
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release && printf '%s' "${ID:-}")
    version=$(. /etc/os-release && printf '%s' "${VERSION_ID:-}")
  fi
  [[ $id == debian ]] ||
    die "this system is '${id:-unknown}', not debian; install what matches ${packages[*]}"
  # Testing and unstable have no VERSION_ID; they are newer than what is asked for.
  [[ -z $version || ${version%%.*} -ge 12 ]] ||
    die "Debian $version is too old: 12 or newer is needed"
}

# quiet COMMAND...: its output is shown only if it fails.
quiet() {
  local log
  log=$(mktemp)
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    rm -f "$log"
    die "failed: $*"
  fi
  rm -f "$log"
}

install_missing() {
  local missing
  if ! command -v dpkg-query >/dev/null; then check_debian; fi
  mapfile -t missing < <(missing_packages "${packages[@]}")
  ((${#missing[@]} > 0)) || return 0
  check_debian
  need_root "installing ${missing[*]}"
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  quiet apt-get update -q
  quiet apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# bytes_of SIZE: 512MiB, 8GiB, 1TiB as a number of bytes.
bytes_of() {
  [[ $1 =~ ^([0-9]{1,6})\ ?(MiB|GiB|TiB)$ ]] ||
    die "--hugepages '$1' is not a size: write it as 512MiB, 8GiB or 1TiB"
  local number=$((10#${BASH_REMATCH[1]}))
  ((number > 0)) || die "--hugepages needs more than nothing"
  case ${BASH_REMATCH[2]} in
    MiB) printf '%s' $((number << 20)) ;;
    GiB) printf '%s' $((number << 30)) ;;
    TiB) printf '%s' $((number << 40)) ;;
  esac
}

reserve_hugepages() {
  local pages now control=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
  pages=$((($1 + huge_page_bytes - 1) / huge_page_bytes))
  [[ -r $control ]] || die "this kernel has no 2 MiB pages ($control is missing)"
  now=$(<"$control")
  if ((now < pages)); then
    need_root "reserving huge pages"
    printf '%s\n' "$pages" >"$control" || die "cannot write $control"
    local got
    got=$(<"$control")
    if ((got < pages)); then
      printf '%s\n' "$now" >"$control"
      die "the kernel found only $got of $pages huge pages and is back at $now: memory is short" \
        "or in pieces; the boot option hugepages=$pages reserves them early"
    fi
    say "reserved $pages huge pages of 2 MiB (there were $now)"
  fi
  if [[ $(findmnt -n -o FSTYPE --target "$hugepages_mount" 2>/dev/null) != hugetlbfs ]]; then
    need_root "mounting hugetlbfs"
    mkdir -p "$hugepages_mount"
    mount -t hugetlbfs -o pagesize=2M none "$hugepages_mount" ||
      die "cannot mount hugetlbfs on $hugepages_mount"
    say "mounted hugetlbfs on $hugepages_mount: use pool.dir = \"$hugepages_mount/cairn\""
  fi
}

while (($# > 0)); do
  case $1 in
    --lint) packages+=("${lint_packages[@]}") ;;
    --hugepages)
      need_value "$1" "$@"
      hugepages_size=$2
      shift
      ;;
    --hugepages=*) hugepages_size=${1#*=} ;;
    --help | -h)
      print_help
      exit 0
      ;;
    *) die "unknown option '$1'; see --help" ;;
  esac
  shift
done

hugepages_bytes=""
# Options are read before anything is changed.
if [[ -n $hugepages_size ]]; then hugepages_bytes=$(bytes_of "$hugepages_size"); fi
install_missing
if [[ -n $hugepages_bytes ]]; then reserve_hugepages "$hugepages_bytes"; fi
