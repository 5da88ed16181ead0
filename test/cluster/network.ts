// Addresses of a cluster. Several can run at once: each has a slot, and with it a bridge and blocks of addresses.

export interface ClusterNetwork {
  slot: number;
  bridge: string;
  /** Of the host on the bridge; the API server has it. */
  host: string;
  apiPort: number;
  etcdPorts: readonly [client: number, peer: number];
  /** For all pods; each node has a /24 of it. */
  pods: string;
  services: string;
  /** Of the API server inside of the cluster. */
  kubernetesService: string;
}

export interface NodeNetwork {
  name: string;
  /** With the length of its prefix. */
  address: string;
  /** For the pods of the node. */
  subnet: string;
  /** The end of its cable that the host has. */
  cable: string;
}

export const SLOTS = 10;

export function clusterNetwork(slot: number): ClusterNetwork {
  return {
    ...{ slot, bridge: `ktest${slot}`, host: `10.123.${slot}.1`, apiPort: 6443 },
    etcdPorts: [12379 + 10 * slot, 12380 + 10 * slot],
    ...{ pods: `10.${130 + slot}.0.0/16`, services: '10.96.0.0/16', kubernetesService: '10.96.0.1' },
  };
}

/** @param number from 1 */
export function nodeNetwork({ slot }: ClusterNetwork, number: number): NodeNetwork {
  return {
    ...{ name: `node${number}`, address: `10.123.${slot}.${10 + number}/24` },
    ...{ subnet: `10.${130 + slot}.${number}.0/24`, cable: `ktest${slot}n${number}` },
  };
}
