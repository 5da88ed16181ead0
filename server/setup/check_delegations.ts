// Whether the zones above delegate to the name server of the platform what it has to answer for. A resolver cannot say:
// it would ask the name server itself, which does not run yet.
import { isIPv6 } from 'node:net';
import type { Config } from '../../core/config';
import type { Probes } from '../../core/context';
import { dnsQuestions } from '../../core/protocols/dns';
import { zoneProbes } from '../platform/zone_probes';
import type { NameCheck } from './check_records';
import { addressesAt, canonicalAddress } from './lookup';
import { nameServerDomain, type DnsRecord, type Plan } from './plan';

export type ReadDelegation = Probes['zone']['delegation'];
type Delegation = Awaited<ReturnType<ReadDelegation>>;

/** Asks the servers above, from the root on. @param domain of the installation */
export function delegationReader(config: Config, domain: string, resolvers: readonly string[]): ReadDelegation {
  // By their names alone: at the address of the name server, somebody else may have been before.
  const own = { ...config, dnsDomain: nameServerDomain(domain), dnsIps: [] };
  return (name) => zoneProbes(own, dnsQuestions({ resolvers: [...resolvers] })).delegation(name);
}

/** One check for each NS record of the plan, all at once. */
export async function checkDelegations(
  { records, addresses }: Pick<Plan, 'records' | 'addresses'>,
  resolvers: readonly string[],
  read: ReadDelegation,
): Promise<NameCheck[]> {
  const delegated = records.filter(({ type }) => type === 'NS');
  return Promise.all(
    delegated.map(async (record) => {
      const found = await read(record.name);
      const [status, detail] = judge(record, found) ?? (await judgeServer(record, found, addresses, resolvers));
      return { name: record.name, status, detail, addresses: [], isDelegation: true };
    }),
  );
}

type Verdict = [status: NameCheck['status'], detail: string];

/** null where the delegation is as it should be. */
function judge({ name, value: server }: DnsRecord, found: Delegation): Verdict | null {
  // Behind a firewall that lets DNS through to one resolver alone.
  if (found === null) return ['ok', `It is not known whether ${name} is delegated: no server above it answered.`];
  if (found.own_parent) return ['ok', `${name} is answered for by the name server of the platform.`];
  const { name_servers: servers } = found;
  if (!servers.length)
    return ['missing', `${name} is not delegated yet: create its NS record, with the value ${server}.`];
  const domain = server.slice(server.indexOf('.'));
  const others = servers.filter((one) => !one.endsWith(domain));
  if (!servers.includes(server))
    return ['wrong', `${name} is delegated to ${servers.join(' and ')}. Its NS record must have the value ${server}.`];
  if (!others.length) return null;
  return ['wrong', `${name} is delegated to ${others.join(' and ')} as well: remove these NS records.`];
}

/** Its own name is below the name that it answers for, so its address must be in the zone above. */
async function judgeServer(
  { name, value: server }: DnsRecord,
  found: Delegation,
  addresses: readonly string[],
  resolvers: readonly string[],
): Promise<Verdict> {
  const good: Verdict = ['ok', `${name} is delegated to ${server}.`];
  if (!server.endsWith(`.${name}`)) return good;
  const listed = (found?.glue ?? []).map((address) => (isIPv6(address) ? canonicalAddress(address) : address));
  const known = listed.length ? listed : (await addressesAt(resolvers, server)).flatMap((answer) => answer ?? []);
  if (!known.length)
    return ['missing', `${server} has no address yet: create the record, beside the NS record of ${name}.`];
  const wrong = [...new Set(known)].filter((address) => addresses.length > 0 && !addresses.includes(address));
  if (!wrong.length) return good;
  const here = addresses.join(' and ');
  return ['wrong', `${server} leads to ${wrong.join(' and ')}, which is not this machine. It must lead to ${here}.`];
}
