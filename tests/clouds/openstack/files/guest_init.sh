#!/bin/sh
# First process of a guest: one static busybox, an ssh server, and what a cloud hands over.
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm; mount -t devpts devpts /dev/pts; mount -t tmpfs shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
while read -r module; do insmod "/modules/$module"; done </modules/order 2>/dev/null
echo "GUEST-UP $(cat /proc/uptime)"
ip link set lo up
hostname guest
user_data= address=
for try in 1 2 3 4 5 6 7 8 9 10; do
    if [ -e /dev/sr0 ] || [ -e /dev/vda ]; then break; fi
    sleep 0.2
done
if mount -t iso9660 -o ro /dev/sr0 /mnt 2>/dev/null && [ -d /mnt/openstack ]; then
    user_data=/mnt/openstack/latest/user_data
    data=$(tr -d '\n' </mnt/openstack/latest/network_data.json)
    address=$(echo "$data" | sed -n 's/.*"ip_address": *"\([0-9.]*\)".*/\1/p')
    sed -n 's/.*"public_keys": *{\([^}]*\)}.*/\1/p' /mnt/openstack/latest/meta_data.json |
        sed 's/[^:]*: *"\([^"]*\)",*/\1/g; s/\\n/\n/g' >>/root/.ssh/authorized_keys
else
    for disk in /dev/vdb /dev/vda /dev/sr0; do
        [ -e "$disk" ] && mount -t vfat -o ro "$disk" /mnt || continue
        if [ -e /mnt/user-data ]; then user_data=/mnt/user-data; break; fi
        umount /mnt
    done
    if [ -e /mnt/meta-data ]; then
        sed -n 's/^ *- *\(ssh-.*\)/\1/p' /mnt/meta-data >>/root/.ssh/authorized_keys
    fi
fi
ip link set eth0 up 2>/dev/null
if [ -n "$address" ]; then
    ip addr add "$address/24" dev eth0
    ip route add default via "${address%.*}.1"
else
    # Until there is one: a loaded host answers late.
    udhcpc -i eth0 -q -t 10 -T 2 -A 1 -s /bin/lease 2>/dev/null
fi
ip -4 addr show eth0 2>/dev/null | grep inet
if [ -n "$user_data" ] && [ -s "$user_data" ]; then
    cp "$user_data" /tmp/user-data
    sh /tmp/user-data </dev/null 2>&1
fi
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
touch /root/.ssh/authorized_keys
chmod 600 /etc/ssh/ssh_host_*_key /root/.ssh/authorized_keys
[ -e /run/sshd.pid ] || /usr/sbin/sshd
echo "GUEST-READY $(cat /proc/uptime)"
while :; do sleep 60; done
