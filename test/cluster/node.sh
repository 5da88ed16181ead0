#!/bin/sh
# The first process of a node, in namespaces of its own for processes, mounts and network: with it all of the node ends,
# as in a power cut. From the environment: NODE (a name), HOME_OF_NODE (a directory), KUBERNETES (the program),
# ADDRESS/PREFIX, KUBECONFIG, IMAGES (an archive), PEERS ("SUBNET via ADDRESS" for each other node, with commas).
set -eu
mount -t proc proc /proc
echo "$NODE" >/proc/sys/kernel/hostname
# kubelet and containerd have fixed places there for sockets, logs and network namespaces.
for place in /run /var/lib /var/log; do mount -t tmpfs tmpfs "$place"; done

until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up
ip address add "$ADDRESS" dev eth0
ip link set eth0 up
ip route add default via "$GATEWAY"
echo "$PEERS" | tr ',' '\n' | while read -r subnet via peer; do
  [ -z "$subnet" ] || ip route add "$subnet" "$via" "$peer"
done
echo 1 >/proc/sys/net/ipv4/ip_forward

cd "$HOME_OF_NODE"
containerd --config containerd.toml >>containerd.log 2>&1 &
until ctr --address containerd.sock version >/dev/null 2>&1; do sleep 0.1; done
ctr --address containerd.sock --namespace k8s.io images import "$IMAGES" >>containerd.log 2>&1
"$KUBERNETES" kubelet --config=kubelet.yaml --kubeconfig="$KUBECONFIG" --root-dir="$HOME_OF_NODE/kubelet" \
  --hostname-override="$NODE" --node-ip="${ADDRESS%/*}" >>kubelet.log 2>&1 &
"$KUBERNETES" kube-proxy --config=proxy.yaml --hostname-override="$NODE" >>proxy.log 2>&1 &
# As every first process it reaps what is left to it.
while :; do wait; sleep 1; done
