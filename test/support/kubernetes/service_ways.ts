// Ways from this machine, which is no node, to the addresses of Services.
import { execFileSync } from 'node:child_process';
import type { ClusterOfMachine } from '../../cluster/cluster';
import { clusterNetwork, nodeNetwork } from '../../cluster/network';
import { hostOfCluster } from './cluster_settings';

export interface ServiceWays {
  /** What is sent to this address goes by a node, and its proxy. */
  open(address: string): void;
  /** From now on by this one. @param machine from 1 */
  leadBy(machine: number): void;
  close(): void;
}

/** By the first node, at first. */
export async function openServiceWays(cluster: ClusterOfMachine): Promise<ServiceWays> {
  const network = clusterNetwork(Number((await hostOfCluster(cluster)).split('.')[2]));
  const addresses = new Set<string>();
  let via = nodeNetwork(network, 1).address.replace(/\/.*/, '');
  const lead = (address: string): unknown => execFileSync('ip', ['route', 'replace', `${address}/32`, 'via', via]);
  return {
    open(address) {
      addresses.add(address);
      lead(address);
    },
    leadBy(machine) {
      via = nodeNetwork(network, machine).address.replace(/\/.*/, '');
      addresses.forEach(lead);
    },
    close() {
      for (const address of addresses) execFileSync('ip', ['route', 'delete', `${address}/32`]);
      addresses.clear();
    },
  };
}
