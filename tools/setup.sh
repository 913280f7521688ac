#!/usr/bin/env bash
# Makes this checkout ready: system packages, virtual environment, static programs, what is generated
# from them. Each step is skipped
# when its input has not changed, so that calling this before every target costs little.
#   tools/setup.sh run            what `nephoscope` needs
#   tools/setup.sh dev            what tests and checks need on top
#   tools/setup.sh probe-here     only the static programs for this machine
#   tools/setup.sh probe-aarch64  the same for 64-bit ARM
#   tools/setup.sh storage [ARCH] the probe with the libraries of storage services (nephoscope-storage)
#   tools/setup.sh notices        only the licence notices of what the programs contain
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .setup
# Two set-ups at once would fight over .venv; the lock goes away with its process.
exec 9>.setup/lock
flock 9

say() { echo "setup: $*" >&2; }
stop() { echo "setup: $1" >&2; exit 4; }

install_packages() { # Debian package names
  if ! command -v apt-get >/dev/null; then
    stop "this needs $*. Install them with this system's package manager, then run the same command again."
  fi
  local root=()
  if [ "$(id -u)" != 0 ]; then
    if ! sudo -n true 2>/dev/null; then
      stop "this needs $*. Run: sudo apt-get install -y $* ; then run the same command again."
    fi
    root=(sudo -n)
  fi
  say "installing $*"
  "${root[@]}" apt-get update -qq >.setup/apt.log 2>&1 &&
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "$@" \
      >>.setup/apt.log 2>&1 ||
    stop "apt-get could not install $*. Read .setup/apt.log, then run the same command again."
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

# Under systemd these packages start servers, some of which listen to everyone: the user's own
# decision. Elsewhere nothing starts them.
server_packages() { # Debian package names
  if [ -d /run/systemd/system ]; then
    say "tests that need $* will be skipped: the package would also start its service"
  else
    missing+=("$@")
  fi
}

# What truth tests make their truths with. Without the right to install them those tests say so and
# are skipped; everything else runs.
test_packages() {
  local missing=()
  command -v chrt >/dev/null || missing+=(util-linux)
  { command -v ip && command -v tc; } >/dev/null || missing+=(iproute2)
  command -v mkfs.ext4 >/dev/null || missing+=(e2fsprogs)
  command -v nft >/dev/null || missing+=(nftables)
  command -v ethtool >/dev/null || missing+=(ethtool)
  [ -x /usr/sbin/sshd ] || server_packages openssh-server
  [ -x /usr/sbin/nginx ] || server_packages nginx-light
  command -v redis-server >/dev/null || server_packages redis-server
  command -v memcached >/dev/null || server_packages memcached
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || server_packages postgresql
  { command -v prometheus && command -v promtool; } >/dev/null || server_packages prometheus
  command -v ssh >/dev/null || missing+=(openssh-client)
  command -v busybox >/dev/null || missing+=(busybox-static)
  # Third-party tools that have an adapter.
  command -v postmark >/dev/null || missing+=(postmark)
  command -v ab >/dev/null || missing+=(apache2-utils)
  command -v h2load >/dev/null || missing+=(nghttp2-client)
  command -v redis-benchmark >/dev/null || missing+=(redis-tools)
  local tool
  for tool in dbench fping httperf ioping iperf iperf3 mbw nuttcp openssl siege sqlite3 sysbench wrk; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  command -v ping >/dev/null || missing+=(iputils-ping)
  command -v mtr >/dev/null || missing+=(mtr-tiny)
  [ -x /usr/sbin/bonnie++ ] || missing+=(bonnie++)
  [ -x /usr/sbin/john ] || missing+=(john)
  command -v 7z >/dev/null || missing+=(p7zip-full)
  command -v cyclictest >/dev/null || missing+=(rt-tests)
  command -v xz >/dev/null || missing+=(xz-utils)
  # The platforms of lab hosts.
  command -v runc >/dev/null || missing+=(runc)
  command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
  if [ "$(uname -m)" = x86_64 ]; then
    command -v linux.uml >/dev/null || missing+=(user-mode-linux)
    command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86 qemu-utils)
  fi
  [ ${#missing[@]} = 0 ] && return
  if command -v apt-get >/dev/null && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; then
    install_packages "${missing[@]}"
  else
    say "some truth tests will be skipped without ${missing[*]}: sudo apt-get install -y ${missing[*]}"
  fi
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

environment() { # lock file, stamp
  local lock=$1 stamp
  stamp=.setup/$(basename "$lock").$(sha256sum "$lock" pyproject.toml | sha256sum | cut -c1-16)
  [ -e "$stamp" ] && [ -x .venv/bin/nephoscope ] && return
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
  else
    stop "the probe for $arch needs the Rust target $musl, which is not installed. Run: rustup target add $musl"
  fi
}

build_probe() { # architecture
  local target flags folder program
  choose_target "$1"
  say "building the probe, the lab program and the simulator ($target)"
  RUSTFLAGS="$flags" cargo build --release --locked -q --package nephoscope-probe \
    --package nephoscope-lab --package nephoscope-sim --target "$target" --target-dir target/static ||
    stop "the probe does not build; the compiler's words are above."
  mkdir -p "$folder"
  for program in nephoscope-lab nephoscope-probe nephoscope-sim; do
    install_program "target/static/$target/release/$program" "$folder/$program"
  done
}

# Written aside and renamed: a program that is running keeps its file.
install_program() { # built file, destination
  cp "$1" "$2.new"
  mv "$2.new" "$2"
}

# The libraries of services double the time of a build, so they are built only where they are asked for,
# into a folder of their own: both programs come from one crate, under one name.
build_storage() { # architecture
  local target flags folder
  choose_target "$1"
  say "building the storage program ($target), which takes some minutes"
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
  [ -z "$(find src/nephoscope tools crates/sim/src -type f -newer "$stamp" ! -name '*.pyc' \
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
  run | dev)
    system_packages
    [ "$1" = run ] || test_packages
    find_cargo
    # Most of the build keeps one CPU busy, so the Python packages are installed beside it.
    (probe_is_fresh || build_probe "$(uname -m)"; notices) &
    building=$!
    # The development lock holds everything of the other one, in the same versions.
    if [ "$1" = dev ] || ls .setup/requirements-dev.lock.* >/dev/null 2>&1; then
      environment requirements-dev.lock
    else
      environment requirements.lock
    fi
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
  probe-aarch64)
    find_cargo
    build_probe aarch64
    say "built src/nephoscope/_probe/aarch64-linux/nephoscope-{probe,lab,sim}"
    ;;
  *) stop "'$1' is not a set-up; use run, dev, probe-here, probe-aarch64, storage or notices." ;;
esac
