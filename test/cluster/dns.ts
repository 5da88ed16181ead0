// The name server of a cluster: names of Services that have an address, over UDP (Kubernetes, "DNS for Services and
// Pods"). While the API server is away, it answers what it knew.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { ControlPlane } from './control_plane';

export const CLUSTER_DOMAIN = 'cluster.local';

const PORT = 53;
const TTL_SECONDS = 1;
const HEADER_BYTES = 12;
/** Of a response: authoritative, recursion not available. */
const ANSWERED = 0x8400;
const NO_SUCH_NAME = 3;
const TYPE_A = 1;

/** @returns what ends it. @param address that pods reach */
export async function startClusterDns(address: string, controlPlane: Pick<ControlPlane, 'get'>): Promise<() => void> {
  const known = new Map<string, string | null>();
  const socket = createSocket('udp4');
  socket.on('message', (query, { address: client, port }) => {
    void answerOf(query, (name) => addressOf(controlPlane, known, name)).then((answer) =>
      socket.send(answer, port, client, () => undefined),
    );
  });
  socket.bind(PORT, address);
  await once(socket, 'listening');
  return () => socket.close();
}

/** null: there is no such Service. */
async function addressOf(
  { get }: Pick<ControlPlane, 'get'>,
  known: Map<string, string | null>,
  name: string,
): Promise<string | null> {
  const [service = '', namespace = '', kind, ...domain] = name.split('.');
  if (kind !== 'svc' || domain.join('.') !== CLUSTER_DOMAIN) return null;
  const found = await get(`/api/v1/namespaces/${namespace}/services/${service}`);
  if (found?.status === 200)
    known.set(name, (JSON.parse(found.body) as { spec: { clusterIP: string } }).spec.clusterIP);
  else if (found?.status === 404) known.set(name, null);
  return known.get(name) ?? null;
}

/** One question, as all resolvers ask (RFC 1035 §4). */
async function answerOf(query: Buffer, lookUp: (name: string) => Promise<string | null>): Promise<Buffer> {
  const labels: string[] = [];
  let end = HEADER_BYTES;
  for (let length = query[end]; length; length = query[end]) {
    labels.push(query.toString('latin1', end + 1, end + 1 + length));
    end += 1 + length;
  }
  const question = query.subarray(HEADER_BYTES, end + 5);
  const address = await lookUp(labels.join('.').toLowerCase());
  const isAnswered = address !== null && question.readUInt16BE(question.length - 4) === TYPE_A;
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(query.readUInt16BE(0), 0);
  header.writeUInt16BE(ANSWERED | (address === null ? NO_SUCH_NAME : 0), 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(isAnswered ? 1 : 0, 6);
  if (!isAnswered) return Buffer.concat([header, question]);
  // The name is that of the question.
  const record = Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, TTL_SECONDS, 0, 4]);
  return Buffer.concat([header, question, record, Buffer.from(address.split('.').map(Number))]);
}
