// A node: containerd, kubelet and proxy in namespaces of their own for processes, mounts, names and network, below
// node.sh.
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterPrograms } from './build';
import { CLUSTER_DOMAIN } from './dns';
import { makeControlGroup } from './host';
import { PAUSE_IMAGE } from './image';
import { nodeNetwork, type ClusterNetwork, type NodeNetwork } from './network';
import { WITHOUT_DISKS } from '../support/runner/repository';
import { runProgram, startProcess, untilExited, waitUntil } from './processes';

export interface ClusterNode {
  name: string;
  /** Of its first process. */
  pid: number;
  /** All that runs on it ends at once, and its cable is out: as in a power cut. */
  kill(): Promise<void>;
}

export interface NodeParts {
  directory: string;
  network: ClusterNetwork;
  programs: ClusterPrograms;
  kubeconfig: string;
  /** Archive of the images that are there from the start. */
  images: string;
  /** Parent of the control groups of all nodes, from the root of each hierarchy. */
  cgroup: string;
  nodes: number;
}

const NODE_SCRIPT = path.join(__dirname, 'node.sh');

/** @param number from 1. With the files of the node before, it is the same node that has power again. */
export async function startNode(parts: NodeParts, number: number): Promise<ClusterNode> {
  const { directory, network } = parts;
  const own = nodeNetwork(network, number);
  const home = path.join(directory, own.name);
  mkdirSync(path.join(home, 'cni'), { recursive: true });
  writeFileSync(path.join(home, 'cni/10-test.conflist'), JSON.stringify(cniConfiguration(home, own)));
  writeFileSync(path.join(home, 'containerd.toml'), containerdConfiguration(home));
  writeFileSync(path.join(home, 'kubelet.yaml'), JSON.stringify(kubeletConfiguration(parts, own, home)));
  writeFileSync(path.join(home, 'proxy.yaml'), JSON.stringify(proxyConfiguration(parts)));
  makeControlGroup(groupOf(parts, own));
  const log = path.join(home, 'node.log');
  const child = startProcess(
    log,
    ['unshare', '--pid', '--net', '--mount', '--uts', '--fork', '--kill-child', 'sh', WITHOUT_DISKS, 'sh', NODE_SCRIPT],
    environmentOf(parts, own, home, number),
  );
  // Not `unshare`, which would end before what it waits for.
  const pid = await plugIn(network, own, child, log);
  return {
    ...{ name: own.name, pid },
    kill: async () => {
      // Before its programs end: in a power cut nobody says goodbye to those that are connected.
      runProgram('ip', 'link', 'delete', own.cable);
      if (childrenOf(child.pid as number).includes(pid)) process.kill(pid, 'SIGKILL');
      await untilExited(child);
    },
  };
}

const groupOf = ({ cgroup }: NodeParts, { name }: NodeNetwork): string => `${cgroup}/${name}`;

function environmentOf(parts: NodeParts, own: NodeNetwork, home: string, number: number): Record<string, string> {
  const peers = Array.from({ length: parts.nodes }, (_, index) => index + 1)
    .filter((other) => other !== number)
    .map((other) => nodeNetwork(parts.network, other))
    .map(({ subnet, address }) => `${subnet} via ${address.replace(/\/.*/, '')}`);
  return {
    ...{ NODE: own.name, HOME_OF_NODE: home, KUBERNETES: parts.programs.kubernetes, ADDRESS: own.address },
    ...{ GATEWAY: parts.network.host, KUBECONFIG: parts.kubeconfig, IMAGES: parts.images, PEERS: peers.join(',') },
  };
}

/** The cable from the bridge becomes the node's eth0, once its first process, which is returned, has its namespaces. */
async function plugIn({ bridge }: ClusterNetwork, own: NodeNetwork, child: ChildProcess, log: string): Promise<number> {
  const hostNetwork = namespaceOf('self');
  const pid = child.pid as number;
  await waitUntil(() => childrenOf(pid).some((one) => namespaceOf(one) !== hostNetwork), {
    ...{ what: `The node ${own.name}`, log, child, seconds: 20 },
  });
  const [first] = childrenOf(pid) as [number];
  const peer = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', String(first)];
  runProgram('ip', 'link', 'add', own.cable, 'master', bridge, 'up', ...peer);
  runProgram('ip', 'route', 'replace', own.subnet, 'via', own.address.replace(/\/.*/, ''));
  return first;
}

function namespaceOf(pid: number | 'self'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return null;
  }
}

function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return children.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function cniConfiguration(home: string, { name, subnet }: NodeNetwork): object {
  const ipam = { type: 'host-local', dataDir: path.join(home, 'addresses'), ranges: [[{ subnet }]] };
  return {
    cniVersion: '1.0.0',
    name,
    plugins: [
      {
        ...{ type: 'bridge', bridge: 'cni0', isGateway: true, ipMasq: false, hairpinMode: true },
        ipam: { ...ipam, routes: [{ dst: '0.0.0.0/0' }] },
      },
    ],
  };
}

function containerdConfiguration(home: string): string {
  return `version = 2
root = "${home}/containerd"
state = "/run/containerd"
[grpc]
  address = "${home}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Without CAP_SYS_RESOURCE runc may not lower oom_score_adj: every pod would fail with "can't get final child's PID".
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${home}/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${path.dirname(home)}/registries"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;
}

function kubeletConfiguration(parts: NodeParts, own: NodeNetwork, home: string): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: 'AlwaysAllow' },
    containerRuntimeEndpoint: `unix://${home}/containerd.sock`,
    // One for each node: kubelet removes groups of pods that it does not know.
    ...{ cgroupDriver: 'cgroupfs', cgroupRoot: groupOf(parts, own), enforceNodeAllocatable: [] },
    ...{ failSwapOn: false, failCgroupV1: false },
    // A test must not be evicted because the disk of the machine is rather full.
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
    // Nor lose its images, which come from no registry, when the disk is fuller than 85 percent.
    imageGCHighThresholdPercent: 100,
    address: own.address.replace(/\/.*/, ''),
    healthzPort: 0,
    nodeStatusUpdateFrequency: '5s',
    ...{ resolvConf: '', clusterDNS: [parts.network.host], clusterDomain: CLUSTER_DOMAIN },
  };
}

function proxyConfiguration({ kubeconfig, network }: NodeParts): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    clientConnection: { kubeconfig },
    clusterCIDR: network.pods,
    mode: 'iptables',
    healthzBindAddress: '',
    metricsBindAddress: '127.0.0.1:10249',
    // The limit would be one of the whole machine.
    conntrack: { maxPerCore: 0 },
  };
}
