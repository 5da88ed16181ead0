// A machine beside this host: a network namespace that a pair of interfaces leads to.
import { run } from '../../../core/process/command';
import { driverContext } from '../../../core/driver';

export interface Pair {
  name: string;
  /** On this host, with its address. */
  link: string;
  here: string;
  address: string;
}

/**
 * Makes a namespace that a pair of interfaces leads to, from this host or from the namespace `host`.
 * @param more further steps; $IP is ip(8) on that host
 */
export async function makePair({ name, link, here, address }: Pair, more: string[], host?: string): Promise<void> {
  const script = [
    'set -e',
    `IP="ip${host === undefined ? '' : ` -n ${host}`}"`,
    `ip netns add ${name}`,
    `$IP link add ${link} type veth peer name eth0 netns ${name}`,
    `${host === undefined ? '' : `ip netns exec ${host} `}sh -c 'echo 1 > /proc/sys/net/ipv4/conf/${link}/forwarding'`,
    `$IP addr add ${here}/24 dev ${link}`,
    `$IP link set ${link} up`,
    `ip -n ${name} link set lo up`,
    `ip -n ${name} addr add ${address}/24 dev eth0`,
    `ip -n ${name} link set eth0 up`,
    ...more,
  ];
  await run('sh', ['-c', script.join('\n')], driverContext(20_000));
}
