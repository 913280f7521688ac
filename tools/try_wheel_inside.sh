# What tools/try_wheel.sh does in mounts and processes of its own; it ends with all of them gone.
mount --make-rprivate /
new=$layer/root
mount -t overlay overlay -o "lowerdir=$root,upperdir=$layer/up,workdir=$layer/work" "$new"
mkdir -p "$new"/{proc,sys,dev,opt/try,etc/ssl/certs}
mount -t proc proc "$new/proc"
mount --rbind /sys "$new/sys"
mount --rbind /dev "$new/dev"
# How this machine reaches the network, and the package index that it was given.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L --remove-destination "$file" "$new$file"
done

enter() { # words
  env -i /usr/sbin/chroot "$new" "${entry[@]}" HOME=/root "$@"
}

survey() { # folder of nephoscope
  enter "$1/nephoscope" --version
  enter "$1/nephoscope" survey --budget 20s
}

entry=(/usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin)
case $kind in
  debian)
    cp "$argument" "$new/opt/try/"
    enter python3 -m venv /opt/try/environment
    before=$(du -sm "$new/opt/try/environment" | cut -f1)
    enter /opt/try/environment/bin/pip install -q "/opt/try/$(basename "$argument")"
    after=$(du -sm "$new/opt/try/environment" | cut -f1)
    echo "installed: $((after - before)) MiB, with pip $after MiB"
    [ -s "$new/opt/try/environment/share/man/man1/nephoscope.1" ] || { echo "no manual page"; exit 1; }
    survey /opt/try/environment/bin
    ;;
  musl)
    entry=(/bin/busybox env PATH=/opt/backend.ai/bin:/bin LD_LIBRARY_PATH=/opt/backend.ai/lib)
    cp "$argument" "$new/opt/try/"
    enter python3 -m pip install -q --root-user-action ignore --no-warn-script-location --prefer-binary \
      "/opt/try/$(basename "$argument")"
    survey /opt/backend.ai/bin
    ;;
  aarch64)
    git clone -q --no-local "$repo" "$new/opt/try/sources"
    mkdir -p "$new/root/.cargo" "${CARGO_HOME:=$HOME/.cargo}/registry" "$argument"
    [ ! -e "$CARGO_HOME/config.toml" ] || cp "$CARGO_HOME/config.toml" "$new/root/.cargo/"
    mkdir "$new/root/.cargo/registry"
    mount --bind "$CARGO_HOME/registry" "$new/root/.cargo/registry"
    # The code is compiled for another machine, whose speed is not asked for: as fast as that goes.
    enter CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=4 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
      /opt/try/sources/tools/setup.sh probe-aarch64
    folder=/opt/try/sources/src/nephoscope/_probe
    for program in probe lab sim; do
      enter qemu-aarch64-static "$folder/aarch64-linux/nephoscope-$program" version
    done
    enter qemu-aarch64-static "$folder/aarch64-linux/nephoscope-probe" describe >"$argument/described.json"
    enter qemu-aarch64-static "$folder/aarch64-linux/nephoscope-probe" run cpu.pi --params '{"digits": 100}' \
      >"$argument/samples.jsonl"
    cp -r "$repo"/src/nephoscope/_probe/* "$new$folder/"
    NEPHOSCOPE_ARCH=aarch64 "$repo/.venv/bin/pip" wheel -q --no-deps --no-build-isolation -w "$argument" \
      "$new/opt/try/sources"
    ;;
esac
