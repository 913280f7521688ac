# The first process of a room with Kubernetes: one node, on which real pods run.
set -eu
# The kubelet sets these for the whole machine: here they already are as it wants them.
for setting in vm/overcommit_memory=1 kernel/panic=10 kernel/panic_on_oops=1 vm/panic_on_oom=0; do
    file=/run/settings/${setting%%=*}
    mkdir -p "${file%/*}"
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${setting%%=*}"
done
# Layers of images cannot lie on the room's own layers.
for folder in /var/lib/containerd /var/lib/kubelet /var/lib/etcd; do
    mkdir -p "$folder"
    mount -t tmpfs -o mode=700 state "$folder"
done
mount --make-rshared /
# Addresses of nodes and endpoints must not be of the loopback.
ip link add node0 type veth peer name node1
ip addr add 10.77.0.1/24 dev node0
ip link set node0 up
ip link set node1 up
ip route add default dev node0

etcd=http://127.0.0.1:2379
config=/etc/kubernetes/kubeconfig
pki=/etc/kubernetes
again() {
    while :; do "$@" >&2 || :; sleep 0.2; done
}
etcd --data-dir /var/lib/etcd --listen-client-urls $etcd --advertise-client-urls $etcd \
    --log-level error >&2 &
again kube-apiserver --etcd-servers=$etcd --feature-gates=WatchList=false \
    --bind-address=127.0.0.1 --secure-port=6443 --advertise-address=10.77.0.1 \
    --tls-cert-file=$pki/server.crt --tls-private-key-file=$pki/server.key --client-ca-file=$pki/ca.crt \
    --token-auth-file=$pki/tokens.csv --authorization-mode=RBAC --allow-privileged=true \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-signing-key-file=$pki/server.key --service-account-key-file=$pki/server.key \
    --service-cluster-ip-range=10.78.0.0/24 --endpoint-reconciler-type=none \
    --kubelet-preferred-address-types=InternalIP &
again kube-controller-manager --kubeconfig=$config --leader-elect=false --bind-address=127.0.0.1 \
    --service-account-private-key-file=$pki/server.key --use-service-account-credentials=false \
    ${CONTROLLER_FLAGS:-} &
again kube-scheduler --kubeconfig=$config --leader-elect=false --bind-address=127.0.0.1 &
containerd --config /etc/containerd/config.toml >&2 &
until ctr version >/dev/null 2>&1; do sleep 0.05; done
ctr --namespace k8s.io images import --local /etc/kubernetes/image.tar >&2 ||
    ctr --namespace k8s.io images import /etc/kubernetes/image.tar >&2
again kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=$config --hostname-override=node \
    --node-ip=10.77.0.1 --node-labels=topology.kubernetes.io/zone=rack-1 &
# It takes over the children of others, and must not end.
while :; do sleep 3600 & wait $!; done
