#!/usr/bin/env bash
# Makes this checkout ready: system packages, virtual environment, static programs, what is generated
# from them. Each step is skipped
# when its input has not changed, so that calling this before every target costs little.
#   tools/setup.sh run            what `nephoscope` needs
#   tools/setup.sh dev            what checks, and tests without other programs, need on top
#   tools/setup.sh test-tools [slow]  the programs that tests start, with those of `make test-all`; prints the
#                                 names of those that it may not install here
#   tools/setup.sh probe-here     only the static programs for this machine
#   tools/setup.sh probe-aarch64  the same for 64-bit ARM; probe-x86_64: for that
#   tools/setup.sh storage [ARCH] the probe with the libraries of storage services (nephoscope-storage)
#   tools/setup.sh docs           what builds the site of the documentation, in an environment of its own
#   tools/setup.sh notices        only the licence notices of what the programs contain
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .setup
# Two set-ups at once would fight over .venv; the lock goes away with its process.
exec 9>.setup/lock
flock 9

say() { echo "setup: $*" >&2; }
stop() { echo "setup: $1" >&2; exit 4; }

# Sets root to the words that make what follows run as root. Whoever sits at a terminal is asked first;
# without one, SUDO=yes agrees.
find_root() { # Debian package names
  local answer
  root=()
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null || return 1
  if [ "${SUDO:-}" != yes ]; then
    [ -t 0 ] || return 1
    echo "setup: these Debian packages are missing: $*" >&2
    read -rp "setup: install them with sudo? [y/N] " answer
    [[ $answer == [yY]* ]] || return 1
    SUDO=yes
  fi
  root=(sudo)
  [ -t 0 ] || root+=(-n)
  "${root[@]}" true
}

install_packages() { # Debian package names
  local root pause
  if ! command -v apt-get >/dev/null; then
    stop "this needs $*. Install them with this system's package manager, then run the same command again."
  fi
  find_root "$@" || stop "this needs $*. Run: sudo apt-get install -y $* ; or the same command with SUDO=yes before it."
  say "installing $*"
  # apt waits for the lock of packages by itself, and not for that of the lists. Another set-up or a timer
  # of the system may hold either for minutes.
  for pause in 5 10 20 40 80 0; do
    apt_get update >.setup/apt.log 2>&1 && apt_get install -y --no-install-recommends "$@" >>.setup/apt.log 2>&1 &&
      return
    grep -q 'Could not get lock\|Unable to lock' .setup/apt.log || break
    say "another program holds apt's lock"
    sleep "$pause"
  done
  stop "apt-get could not install $*. Read .setup/apt.log, then run the same command again."
}

apt_get() {
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

find_python() {
  local candidate
  for candidate in python3.11 python3.12 python3.13 python3; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

system_packages() {
  local missing=()
  find_python >/dev/null || missing+=(python3)
  "$(find_python || echo false)" -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
  command -v cc >/dev/null || missing+=(gcc libc6-dev)
  [ ${#missing[@]} = 0 ] || install_packages "${missing[@]}"
  find_python >/dev/null || stop "this needs Python 3.11 or newer. Install it, then run the same command again."
}

# What tests start (tools/test_packages.txt). Under systemd some packages would also start servers, some
# of which listen to everyone: the user's own decision. Without the right to install, nothing is
# installed. The tests of what is left out say so and are skipped.
test_tools() { # "slow" for what only slow tests need, too
  local package when program programs root missing wanted=() left_out=() packages=()
  local folder
  for folder in /usr/sbin /sbin /usr/games /usr/lib/postgresql/*/bin; do
    PATH+=:$folder
  done
  while read -r package when programs; do
    missing=()
    for program in $programs; do
      command -v "$program" >/dev/null || missing+=("$program")
    done
    [ ${#missing[@]} != 0 ] || continue
    wanted+=("${missing[@]}")
    case $when in
      always) packages+=("$package") ;;
      slow) [ "${1:-}" != slow ] || packages+=("$package") ;;
      service) if [ -d /run/systemd/system ]; then left_out+=("${missing[@]}"); else packages+=("$package"); fi ;;
      x86_64) if [ "$(uname -m)" = x86_64 ]; then packages+=("$package"); else left_out+=("${missing[@]}"); fi ;;
      none) ;;
      *) stop "tools/test_packages.txt has the word '$when' for $package, which is unknown." ;;
    esac
  done < <(grep -v '^#' tools/test_packages.txt)
  if [ ${#left_out[@]} != 0 ]; then
    say "tests that need ${left_out[*]} will be skipped: their packages start services, or are for x86_64 only"
  fi
  if [ ${#packages[@]} != 0 ]; then
    if command -v apt-get >/dev/null && find_root "${packages[@]}"; then
      install_packages "${packages[@]}"
    else
      say "some tests will be skipped. To run them: sudo apt-get install -y ${packages[*]}"
      left_out+=("${wanted[@]}")
    fi
  fi
  [ "${1:-}" != slow ] || schemathesis
  echo "${left_out[*]}"
}

# In an environment of its own: it is a plug-in of pytest, which all tests would load.
schemathesis() {
  local folder=.setup/schemathesis
  [ ! -x "$folder/bin/schemathesis" ] || return 0
  say "installing schemathesis into $folder"
  "$(find_python)" -m venv "$folder" &&
    "$folder/bin/pip" install -q --disable-pip-version-check schemathesis==4.32.5 >&2 ||
    say "its tests will be skipped: pip could not install it"
}

find_cargo() {
  command -v cargo >/dev/null || export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
  command -v cargo >/dev/null ||
    stop "this needs cargo (Rust 1.89 or newer). Install Rust as rustup.rs describes, then run the same command again."
  local version
  version=$(rustc --version | cut -d' ' -f2)
  [ "$(printf '%s\n' 1.89.0 "$version" | sort -V | head -n1)" = 1.89.0 ] ||
    stop "this needs Rust 1.89 or newer and found $version. Run: rustup update stable"
}

# Sets stamp.
environment_is_fresh() { # lock file
  stamp=.setup/$(basename "$1").$(sha256sum "$1" pyproject.toml | sha256sum | cut -c1-16)
  [ -e "$stamp" ] && [ -x .venv/bin/nephoscope ]
}

# Before anything is installed or built, what will be.
announce() { # lock file
  local stamp
  if ! environment_is_fresh "$1"; then
    say "this will install the $(grep -c == "$1") Python packages of $1 into .venv, with their sums checked"
  fi
  probe_is_fresh || say "this will build the static programs with cargo, from crates of Cargo.lock, below target/"
}

environment() { # lock file
  local lock=$1 stamp
  environment_is_fresh "$lock" && return
  [ -x .venv/bin/python ] || "$(find_python)" -m venv .venv ||
    stop "the virtual environment .venv cannot be made. Check free space and permissions here."
  say "installing the locked Python packages of $lock"
  .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r "$lock" ||
    stop "pip could not install $lock. Check the network, then run the same command again."
  entry_point
  rm -f .setup/"$(basename "$lock")".*
  touch "$stamp"
}

# What an editable install would do, without a build: the package on the path, its command in bin/.
entry_point() {
  local site
  site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/src" >"$site/nephoscope-source.pth"
  cat >.venv/bin/nephoscope <<SCRIPT
#!$PWD/.venv/bin/python
import sys

from nephoscope.command_line import main

sys.exit(main())
SCRIPT
  chmod +x .venv/bin/nephoscope
}

# Sets target, flags and folder.
choose_target() { # architecture
  local arch=$1 musl=$1-unknown-linux-musl
  folder=src/nephoscope/_probe/$1-linux
  if command -v rustup >/dev/null && ! rustup target list --installed | grep -qx "$musl"; then
    say "adding the Rust target $musl"
    timeout 120 rustup target add "$musl" >.setup/rustup.log 2>&1 || true
  fi
  flags="-C target-feature=+crt-static"
  if [ -d "$(rustc --print sysroot)/lib/rustlib/$musl" ]; then
    target=$musl
    # Rust's own linker and start files: no C compiler for the other architecture is needed.
    [ "$arch" = "$(uname -m)" ] || flags="$flags -C linker=rust-lld -C link-self-contained=yes"
  elif [ "$arch" = "$(uname -m)" ]; then
    target=$arch-unknown-linux-gnu
  elif [ -d "$(rustc --print sysroot)/lib/rustlib/$arch-unknown-linux-gnu" ] &&
    command -v "$arch-linux-gnu-gcc" >/dev/null; then
    # As distributions package Rust: the standard library of the other architecture, without musl.
    target=$arch-unknown-linux-gnu
    flags="$flags -C linker=$arch-linux-gnu-gcc"
  else
    stop "the probe for $arch needs the Rust target $musl, which is not installed. Run: rustup target add $musl"
  fi
}

build_probe() { # architecture
  local target flags folder program
  choose_target "$1"
  say "building the probe, the lab program and the simulator ($target)"
  touch .setup/building
  RUSTFLAGS="$flags" cargo build --release --locked -q --package nephoscope-probe \
    --package nephoscope-lab --package nephoscope-sim --target "$target" --target-dir target/static ||
    stop "the probe does not build; the compiler's words are above."
  mkdir -p "$folder"
  for program in nephoscope-lab nephoscope-probe nephoscope-sim; do
    install_program "target/static/$target/release/$program" "$folder/$program"
  done
}

# Written aside and renamed: a program that is running keeps its file. It is as old as the sources that
# went into it, so that an edit during the build counts as newer.
install_program() { # built file, destination
  cp "$1" "$2.new"
  touch -r .setup/building "$2.new"
  mv "$2.new" "$2"
}

# The libraries of services double the time of a build, so they are built only where they are asked for,
# into a folder of their own: both programs come from one crate, under one name.
build_storage() { # architecture
  local target flags folder
  choose_target "$1"
  say "building the storage program ($target), which takes some minutes"
  touch .setup/building
  RUSTFLAGS="$flags" cargo build --release --locked -q --package nephoscope-probe --features storage \
    --target "$target" --target-dir target/storage ||
    stop "the storage program does not build; the compiler's words are above. It needs Rust 1.91 or newer."
  mkdir -p "$folder"
  install_program "target/storage/$target/release/nephoscope-probe" "$folder/nephoscope-storage"
}

storage_is_fresh() {
  local out=src/nephoscope/_probe/$1-linux/nephoscope-storage
  [ -x "$out" ] && [ -z "$(find crates Cargo.toml Cargo.lock -newer "$out" -print -quit)" ]
}

notices() {
  local file=src/nephoscope/_probe/NOTICES.txt
  [ "$file" -nt Cargo.lock ] && [ "$file" -nt tools/notices.py ] ||
    "$(find_python)" tools/notices.py "$file" ||
    stop "the licence notices cannot be written; the words of cargo are above."
}

probe_is_fresh() {
  local program out
  for program in nephoscope-probe nephoscope-lab nephoscope-sim; do
    out=src/nephoscope/_probe/$(uname -m)-linux/$program
    [ -x "$out" ] || return
    [ -z "$(find crates Cargo.toml Cargo.lock -newer "$out" -print -quit)" ] || return
  done
}

# Contracts and reference pages, from the programs and the Python sources (tools/generate.py).
generated_is_fresh() {
  local stamp=.setup/generated
  [ -e "$stamp" ] && [ -d src/nephoscope/_contracts ] && [ -d docs/reference/generated ] || return
  [ -z "$(find src/nephoscope tools studies crates/sim/src -type f -newer "$stamp" ! -name '*.pyc' \
    ! -path '*/_contracts/*' -print -quit)" ]
}

generate() {
  generated_is_fresh && return
  touch .setup/generated.new
  # The byte code that this writes is what the commands start with.
  env -u PYTHONDONTWRITEBYTECODE .venv/bin/python tools/generate.py --built ||
    stop "the contracts and the reference pages cannot be generated; the reason is above."
  mv .setup/generated.new .setup/generated
}

case "${1:-run}" in
  test-tools)
    test_tools "${2:-}"
    ;;
  run | dev)
    # The development lock holds everything of the other one, in the same versions.
    lock=requirements.lock
    if [ "$1" = dev ] || ls .setup/requirements-dev.lock.* >/dev/null 2>&1; then
      lock=requirements-dev.lock
    fi
    announce "$lock"
    system_packages
    find_cargo
    # Most of the build keeps one CPU busy, so the Python packages are installed beside it.
    (probe_is_fresh || build_probe "$(uname -m)"; notices) &
    building=$!
    environment "$lock"
    wait "$building"
    generate
    ;;
  probe-here)
    find_cargo
    build_probe "$(uname -m)"
    notices
    # Before there is an environment, whoever makes one generates.
    [ ! -x .venv/bin/nephoscope ] || generate
    ;;
  storage)
    find_cargo
    arch=${2:-$(uname -m)}
    storage_is_fresh "$arch" || build_storage "$arch"
    rm -f src/nephoscope/_probe/NOTICES.txt
    notices
    ;;
  notices)
    find_cargo
    notices
    ;;
  docs)
    folder=.setup/docs/environment
    if [ ! -e "$folder/done" ] || [ requirements-docs.lock -nt "$folder/done" ]; then
      say "this installs the $(grep -c == requirements-docs.lock) Python packages of requirements-docs.lock into $folder"
      rm -rf "$folder"
      "$(find_python)" -m venv "$folder"
      "$folder/bin/pip" install -q --disable-pip-version-check --require-hashes -r requirements-docs.lock ||
        stop "pip could not install requirements-docs.lock. Check the network, then run the same command again."
      touch "$folder/done"
    fi
    ;;
  probe-aarch64 | probe-x86_64)
    find_cargo
    build_probe "${1#probe-}"
    say "built src/nephoscope/_probe/${1#probe-}-linux/nephoscope-{probe,lab,sim}"
    ;;
  *) stop "'$1' is not a set-up; use run, dev, test-tools, probe-here, probe-aarch64, storage, docs or notices." ;;
esac
