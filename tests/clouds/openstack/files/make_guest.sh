# Makes the guest's kernel and first root from the packages of the room.
set -eu
to=/srv/guest
tree=$(mktemp -d)
version=$(ls /lib/modules)
mkdir -p "$to" "$tree"/bin "$tree"/sbin "$tree"/dev "$tree"/proc "$tree"/sys "$tree"/tmp "$tree"/run/sshd \
    "$tree"/mnt "$tree"/root/.ssh "$tree"/etc/ssh "$tree"/modules "$tree"/usr/bin "$tree"/usr/sbin \
    "$tree"/usr/lib/openssh "$tree"/var/empty
ln -s usr/lib "$tree"/lib; mkdir -p "$tree"/usr/lib64; ln -s usr/lib64 "$tree"/lib64
chmod 700 "$tree"/root "$tree"/root/.ssh
cp /bin/busybox "$tree"/bin/
for name in $(busybox --list | grep -vx busybox); do ln -sf busybox "$tree/bin/$name"; done
for program in /usr/sbin/sshd /usr/bin/ssh-keygen; do
    cp "$program" "$tree$program"
    ldd "$program" | sed -n 's/^[^/]*\(\/[^ ]*\) (0x.*/\1/p' | while read -r library; do
        mkdir -p "$tree$(dirname "$library")"
        cp -L "$library" "$tree$library"
    done
done
: >"$tree"/modules/order
for module in virtio_pci virtio_net virtio_blk virtio_rng ata_piix sr_mod isofs vfat nls_cp437 nls_ascii nls_utf8 nls_iso8859-1; do
    modprobe -S "$version" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | while read -r file; do
    name=$(basename "$file")
    [ -e "$tree/modules/$name" ] && continue
    cp "$file" "$tree/modules/$name"
    echo "$name" >>"$tree"/modules/order
done
printf 'root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n' >"$tree"/etc/passwd
printf 'root:x:0:\nnogroup:x:65534:\n' >"$tree"/etc/group
printf 'root::19000:0:99999:7:::\nsshd:*:19000::::::\n' >"$tree"/etc/shadow
printf 'PermitRootLogin prohibit-password\nHostKey /etc/ssh/ssh_host_ed25519_key\nPidFile /run/sshd.pid\nUseDNS no\n' \
    >"$tree"/etc/ssh/sshd_config
cat >"$tree"/bin/lease <<'LEASE'
#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev "$interface"
[ -z "$router" ] || ip route add default via "${router%% *}"
LEASE
# What asks the service manager of an ordinary guest to restart its ssh server reaches this one.
cat >"$tree"/bin/systemctl <<'RESTART'
#!/bin/sh
case "$*" in *ssh*) [ ! -e /run/sshd.pid ] || kill "$(cat /run/sshd.pid)"; rm -f /run/sshd.pid; sleep 0.2; /usr/sbin/sshd ;; esac
RESTART
cp /srv/files/guest_init.sh "$tree"/init
chmod 755 "$tree"/init "$tree"/bin/lease "$tree"/bin/systemctl
(cd "$tree" && find . | cpio --quiet -o -H newc) | zstd -q -3 >"$to"/initrd
cp "/boot/vmlinuz-$version" "$to"/vmlinuz
ls -l "$to"
