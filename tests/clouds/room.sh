# The first process of a room: a root, processes, a network, control groups of its own.
#
# $1: the root, which stays as it is. $2: an empty folder. $3: cgroup folders to be in first, one a
# line; the other arguments are the command, which becomes process 1 there.
set -eu
root=$1 work=$2 groups=$3
shift 3
if [ "${INSIDE:-}" = "" ]; then
    echo "$groups" | while read -r group; do
        mkdir -p "$group"
        # A new group of version 1 has no CPUs and no memory nodes until it is given some.
        [ ! -e "$group/cgroup.clone_children" ] || echo 1 >"$group/cgroup.clone_children"
        for what in cpuset.cpus cpuset.mems; do
            [ ! -e "$group/$what" ] || cat "${group%/*}/$what" >"$group/$what"
        done
        echo $$ >"$group/cgroup.procs"
    done
    INSIDE=1 exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child --propagation private \
        sh "$0" "$root" "$work" "$groups" "$@"
fi
unset INSIDE
mount -t tmpfs -o mode=755 room "$work"
mkdir "$work/upper" "$work/work" "$work/root"
mount -t overlay -o "lowerdir=$root,upperdir=$work/upper,workdir=$work/work" room "$work/root"
cd "$work/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 cgroup sys/fs/cgroup
while read -r _ hierarchies _; do
    case $hierarchies in
        *name=*) name=${hierarchies#*name=}; options=none,name=$name ;;
        *) name=$hierarchies; options=$hierarchies ;;
    esac
    mkdir "sys/fs/cgroup/$name"
    mount -t cgroup -o "$options" cgroup "sys/fs/cgroup/$name"
done <<HIERARCHIES
$(sed -n 's/^[0-9]*:\([^:]\{1,\}\):.*/- \1 -/p' /proc/self/cgroup)
HIERARCHIES
mount -t tmpfs -o mode=755 dev dev
for node in null zero full random urandom tty net fuse kmsg; do
    [ -e "/dev/$node" ] || continue
    if [ -d "/dev/$node" ]; then mkdir "dev/$node"; else : >"dev/$node"; fi
    mount --rbind "/dev/$node" "dev/$node"
done
ln -s /proc/self/fd dev/fd
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs shm dev/shm
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mkdir -p old
pivot_root . old
cd /
umount -l old
hostname room
ip link set lo up
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
exec "$@"
