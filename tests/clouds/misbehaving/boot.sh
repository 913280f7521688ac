# The first process of a machine. $1: its folder, in memory; $2: its instance's id; $3: this folder.
# Waits for a line (the network is there), then makes a root of its own and boots.
set -eu
folder=$1
read -r _ || true
exec < /dev/null
first=no
if [ ! -e "$folder/upper" ]; then
  first=yes
fi
# What was written stays over a reboot or a stop, as on a disk.
mkdir -p "$folder/root" "$folder/upper" "$folder/work" "$folder/home"
mount --make-rprivate /
root=$folder/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
# A machine that powers itself off by force must not reach the real one.
if [ -e "$root/proc/sysrq-trigger" ]; then
  mount --bind /dev/null "$root/proc/sysrq-trigger"
fi
mount -t sysfs -o ro sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
for each in run tmp home; do
  mount -t tmpfs -o mode=1777 tmpfs "$root/$each"
done
mount --bind "$folder/home" "$root/root"
mkdir -p "$root/run/sshd" "$root/run/machine"
chmod 755 "$root/run" "$root/run/sshd"
mount --bind "$folder" "$root/run/machine"
if [ "$first" = yes ]; then
  rm -f "$root/etc/ssh/"ssh_host_*
  mkdir -m 700 "$root/root/.ssh"
  cp "$folder/key" "$root/root/.ssh/authorized_keys"
  chmod 600 "$root/root/.ssh/authorized_keys"
  # Programs that would speak to the real machine's init.
  for name in poweroff halt reboot shutdown systemctl service; do
    for place in usr/local/sbin usr/sbin usr/bin; do
      if [ "$place" = usr/local/sbin ] || [ -e "$root/$place/$name" ] || [ -L "$root/$place/$name" ]; then
        rm -f "$root/$place/$name"
        cp "$3/stub.sh" "$root/$place/$name"
        chmod 755 "$root/$place/$name"
      fi
    done
  done
fi
hostname "$2"
silent=no
[ ! -e "$folder/silent" ] || silent=yes
cat > "$root/run/start" <<END
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
cd /
trap 'exit 0' TERM
# As cloud-init does at each boot: https://docs.cloud-init.io/en/latest/reference/modules.html
for hook in /var/lib/cloud/scripts/per-boot/*; do
  if [ -x "\$hook" ]; then "\$hook"; fi
done
if [ $first = yes ] && head -c 2 /run/machine/user-data | grep -q '#!'; then
  cp /run/machine/user-data /root/.user-data
  chmod 700 /root/.user-data
  /root/.user-data
  rm -f /root/.user-data
fi
[ -e /etc/ssh/ssh_host_ed25519_key ] \
  || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
if [ $silent = no ]; then
  /usr/sbin/sshd -D -e -o UsePAM=no -o PidFile=/run/sshd.pid -o PasswordAuthentication=no \
    -o PermitRootLogin=prohibit-password -o HostKey=/etc/ssh/ssh_host_ed25519_key &
fi
echo "machine $2 is up"
while :; do
  sleep 1000 &
  wait \$!
done
END
exec chroot "$root" sh /run/start
