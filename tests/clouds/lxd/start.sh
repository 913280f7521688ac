# The first process of a room with LXD: its daemon with a bridge and a pool in memory.
set -eu
mount -t tmpfs -o mode=711 lxd /var/lib/lxd
lxd --group root >&2 &
lxd waitready --timeout=60
lxd init --preseed <<'PRESEED'
storage_pools:
  - {name: default, driver: dir}
networks:
  - name: lxdbr0
    type: bridge
    config: {ipv4.address: 10.81.0.1/24, ipv4.nat: "false", ipv6.address: none}
profiles:
  - name: default
    devices:
      root: {type: disk, path: /, pool: default}
      eth0: {type: nic, network: lxdbr0, name: eth0}
PRESEED
lxc project create bounded -c features.images=false -c features.profiles=false -c limits.instances=4
touch /run/ready
# It takes over the children of others, and must not end.
while :; do sleep 3600 & wait $!; done
