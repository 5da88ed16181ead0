// Delegation of a zone in its parent, found by a walk from the root with our own queries: a resolver would return the
// records of the zone itself.
import { createSocket } from 'node:dgram';
import { isIP } from 'node:net';
import * as packet from 'dns-packet';
import { DriverError } from '../../core/driver';
import type { DnsQuestions } from '../../core/protocols/dns';
import { readTransfer } from './transfer_client';

export interface Delegation {
  /** In lower case, without a trailing dot, sorted; empty where the parent does not delegate the zone. */
  name_servers: string[];
  /** `key_tag algorithm digest_type DIGEST`, sorted. */
  ds_records: string[];
  /** What the parent lists as addresses of these name servers; those of servers below the zone are needed there. */
  glue: string[];
  /** The parent zone, where it is delegated to our own name servers: these are not queried. */
  own_parent: { zone: string; name_servers: string[] } | null;
}

export interface DelegationOptions {
  /** Addresses of the root servers, with a port where it is not 53. All other servers use the same port. */
  roots: readonly string[];
  questions: Pick<DnsQuestions, 'a' | 'aaaa'>;
  /** Our own name servers: the domain of their names, and their addresses. */
  own: { domain: string; addresses: readonly string[] };
}

/** a to m.root-servers.net (https://www.iana.org/domains/root/servers). */
export const ROOT_SERVERS = [
  '198.41.0.4',
  '170.247.170.2',
  '192.33.4.12',
  '199.7.91.13',
  '192.203.230.10',
  '192.5.5.241',
];

const STEPS_MAX = 16;
const SERVERS_TRIED_MAX = 3;
const ANSWER_WITHIN_MS = 1_200;
const TRANSFER_WITHIN_MS = 1_500;
const DNS_PORT = 53;

/**
 * Queries the servers of the parent zone, non-recursively.
 * @throws DriverError transient where none of them responds
 */
export async function readDelegation(
  zone: string,
  options: DelegationOptions,
  signal: AbortSignal,
): Promise<Delegation> {
  const { addresses: roots, port } = endpointsOf(options.roots);
  let servers = roots;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const answer = await queryAnyServer(servers, port, zone, 'NS', signal);
    const found = nameServersFor(zone, answer);
    if (found) {
      const digests = found.length ? await queryAnyServer(servers, port, zone, 'DS', signal) : null;
      const ds_records = digests ? dsRecordsOf(digests) : [];
      return { name_servers: found, ds_records, glue: glueOf(found, answer), own_parent: null };
    }
    const referral = referralFor(zone, answer);
    if (isOwnByName(referral, options)) return ownParent(referral);
    servers = await addressesFor(referral, answer, options);
    if (servers.some((address) => options.own.addresses.includes(address))) return ownParent(referral);
  }
  throw new DriverError('transient', 'The parent zone was not found within 16 referrals.');
}

/** All records of a zone, where one of its name servers allows a transfer; null otherwise. */
export async function readWholeZone(
  zone: string,
  nameServers: readonly string[],
  options: DelegationOptions,
  signal: AbortSignal,
): Promise<packet.Answer[] | null> {
  const { port } = endpointsOf(options.roots);
  const servers = (await Promise.all(nameServers.map((name) => addressesOf(name, options)))).flat();
  const late = AbortSignal.any([signal, AbortSignal.timeout(TRANSFER_WITHIN_MS)]);
  const transfers = servers.slice(0, SERVERS_TRIED_MAX).map((address) => readTransfer(zone, { address, port }, late));
  return (await Promise.all(transfers)).find((records) => records !== null) ?? null;
}

/** Current records from the name servers of a zone for names and types, for an import. */
export async function readRecords(
  zone: string,
  nameServers: readonly string[],
  wanted: readonly { name: string; type: packet.StringRecordType }[],
  options: DelegationOptions,
  signal: AbortSignal,
): Promise<packet.StringAnswer[]> {
  const { port } = endpointsOf(options.roots);
  const servers = (await Promise.all(nameServers.map((name) => addressesOf(name, options)))).flat();
  if (!servers.length) throw new DriverError('transient', 'The name servers of the zone have no addresses.');
  const found = new Map<string, packet.StringAnswer>();
  for (const { name, type } of wanted) {
    const { answers = [] } = await queryAnyServer(servers, port, name === '@' ? zone : `${name}.${zone}`, type, signal);
    for (const answer of answers)
      if (answer.type === type) found.set(JSON.stringify(answer), answer as packet.StringAnswer);
  }
  return [...found.values()];
}

function endpointsOf(roots: readonly string[]): { addresses: string[]; port: number } {
  const pairs = roots.map((root) => /^\[?([^\]]+?)\]?(?::(\d+))?$/.exec(isIP(root) === 6 ? `[${root}]` : root));
  const port = Number(pairs[0]?.[2] ?? DNS_PORT);
  return { addresses: pairs.flatMap((pair) => pair?.[1] ?? []), port };
}

/** The delegation of the zone, [] where there is none; null for a referral to a zone above it. */
function nameServersFor(
  zone: string,
  { answers = [], authorities = [], flag_aa, rcode }: packet.DecodedPacket & { rcode?: string },
): string[] | null {
  const isOf = ({ type, name }: packet.Answer): boolean => type === 'NS' && name.toLowerCase() === zone;
  const found = [...answers, ...authorities].filter(isOf) as packet.StringAnswer[];
  if (found.length) return [...new Set(found.map(({ data }) => data.toLowerCase()))].sort();
  const isReferral = authorities.some(({ type }) => type === 'NS') && !flag_aa;
  if (isReferral) return null;
  if (rcode === 'NOERROR' || rcode === 'NXDOMAIN') return [];
  throw new DriverError('transient', 'The servers of the parent zone refuse to answer.');
}

interface Referral {
  zone: string;
  name_servers: string[];
}

/** The lowest zone at or above this one that the response delegates. */
function referralFor(zone: string, { authorities = [] }: packet.DecodedPacket): Referral {
  const found = authorities.flatMap((record) => {
    const name = record.name.toLowerCase();
    if (record.type !== 'NS' || !(zone === name || zone.endsWith(`.${name}`))) return [];
    return [{ name, server: (record as packet.StringAnswer).data.toLowerCase() }];
  });
  const lowest = found.reduce((best, { name }) => (name.length > best.length ? name : best), '');
  const own = found.filter(({ name }) => name === lowest);
  return { zone: lowest, name_servers: own.map(({ server }) => server) };
}

function isOwnByName({ name_servers }: Referral, { own }: DelegationOptions): boolean {
  return name_servers.some((server) => server.endsWith(`.${own.domain}`));
}

function ownParent(own_parent: Referral): Delegation {
  return { name_servers: [], ds_records: [], glue: [], own_parent };
}

/** Addresses of the name servers in a referral: glue, or from the resolvers of the host. */
async function addressesFor(
  { name_servers: names }: Referral,
  answer: packet.DecodedPacket,
  options: DelegationOptions,
): Promise<string[]> {
  const glue = glueOf(names, answer).filter((address) => isIP(address) === 4);
  if (glue.length) return glue;
  for (const name of names.slice(0, SERVERS_TRIED_MAX)) {
    const addresses = await addressesOf(name, options);
    if (addresses.length) return addresses;
  }
  throw new DriverError('transient', 'The servers of the parent zone have no addresses.');
}

function glueOf(names: readonly string[], { additionals = [] }: packet.DecodedPacket): string[] {
  return additionals.flatMap((found) =>
    (found.type === 'A' || found.type === 'AAAA') && names.includes(found.name.toLowerCase()) ? [found.data] : [],
  );
}

async function addressesOf(name: string, { questions }: DelegationOptions): Promise<string[]> {
  const found = await questions.a(name).catch(() => []);
  return found.length ? found : questions.aaaa(name).catch(() => []);
}

function dsRecordsOf({ answers = [] }: packet.DecodedPacket): string[] {
  const found = answers.flatMap((answer) => (answer.type === 'DS' ? [answer.data] : []));
  return found
    .map(
      ({ keyTag, algorithm, digestType, digest }) =>
        `${keyTag} ${algorithm} ${digestType} ${digest.toString('hex').toUpperCase()}`,
    )
    .sort();
}

/** The first response; each server is queried once. */
async function queryAnyServer(
  servers: readonly string[],
  port: number,
  name: string,
  type: packet.RecordType,
  signal: AbortSignal,
): Promise<packet.DecodedPacket> {
  const start = Math.floor(Math.random() * servers.length);
  for (let turn = 0; turn < Math.min(SERVERS_TRIED_MAX, servers.length); turn += 1) {
    if (signal.aborted) break;
    const answer = await queryServer(servers[(start + turn) % servers.length] as string, port, name, type);
    if (answer) return answer;
  }
  throw new DriverError('transient', `No server gave an answer about ${name}.`);
}

function queryServer(
  address: string,
  port: number,
  name: string,
  type: packet.RecordType,
): Promise<packet.DecodedPacket | null> {
  const id = Math.floor(Math.random() * 0x10000);
  const query = packet.encode({ type: 'query', id, flags: 0, questions: [{ type, name }] });
  const socket = createSocket(isIP(address) === 6 ? 'udp6' : 'udp4');
  return new Promise<packet.DecodedPacket | null>((resolve) => {
    const timer = setTimeout(() => resolve(null), ANSWER_WITHIN_MS);
    socket.on('error', () => resolve(null));
    socket.on('message', (message) => {
      try {
        const answer = packet.decode(message);
        const [question] = answer.questions ?? [];
        if (answer.id === id && question?.name.toLowerCase() === name && question.type === type) resolve(answer);
      } catch {
        // Not a response to this query.
      }
    });
    // Accept responses from this server only. A callback would get the error of an address without a route in the place
    // of the event above: whoever owns a zone chooses its addresses.
    socket.once('connect', () => socket.send(query));
    socket.connect(port, address);
    socket.once('close', () => clearTimeout(timer));
  }).finally(() => socket.close());
}
