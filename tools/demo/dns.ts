// A DNS zone in the demo: delegated by a parent zone that the demo plays, signed, and answered over UDP.
import { createSocket } from 'node:dgram';
import * as packet from 'dns-packet';
import type { Resource } from './api';
import { boundPort, freeDnsPort } from './ports';
import type { Show } from './show';
import type { Stage } from './stage';

/** The zone that a parent delegates. */
export const ZONE = 'demo.example.com';
const ANSWER_WITHIN_MS = 5_000;
const ASK_EVERY_MS = 100;

/** What stands for the root and everything above the zone. */
export interface Parent {
  /** Settings of the service that uses it. */
  settings: Record<string, string>;
  /** The port at which the service answers for its zones. */
  port: number;
  delegate(nameServers: string[]): void;
  close(): void;
}

export async function openParent(): Promise<Parent> {
  let nameServers: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (message, { port, address }) => {
    const { id = 0, questions = [] } = packet.decode(message);
    const isAsked = questions[0]?.type === 'NS';
    const authorities = isAsked ? nameServers.map((data) => ({ type: 'NS' as const, name: ZONE, ttl: 60, data })) : [];
    socket.send(packet.encode({ type: 'response', id, questions, authorities }), port, address);
  });
  const [own, port] = [await boundPort(socket), await freeDnsPort()];
  return {
    settings: { DEMO_DNS_ROOT: `127.0.0.1:${own}`, DNS_PORT: String(port) },
    port,
    delegate: (names) => void (nameServers = names),
    close: () => socket.close(),
  };
}

/** A zone, a record, DNSSEC, and the answer with its signature. */
export async function showZone({ api }: Stage, show: Show, parent: Parent): Promise<void> {
  show.step(`A DNS zone is made, ${ZONE}, and signed`);
  const zone = await api.call<Resource & { name_servers: string[] }>('POST', '/v2/dns_zones', { name: ZONE });
  const path = `/v2/dns_zones/${zone.id}`;
  await api.call('POST', `${path}/records`, { type: 'A', name: 'www', value: '192.0.2.10' });
  parent.delegate(zone.name_servers);
  const { status } = await api.call('POST', `${path}/verify`);
  show.expect(status === 'active', `delegated to ${zone.name_servers.join(' and ')}`);
  type Dnssec = { ds_records: { key_tag: number; digest: string }[] };
  const { ds_records } = await api.call<Dnssec>('POST', `${path}/dnssec`);
  show.line(`DS for the registrar: ${ds_records[0]?.key_tag} 13 2 ${ds_records[0]?.digest}`);
  const answers = await signedAnswer(parent.port);
  for (const answer of answers) show.line(`${answer.name} ${answer.type}`);
  show.expect(answers.length === 2, `www.${ZONE} is answered over UDP with its signature`);
  await api.call('DELETE', path);
}

async function signedAnswer(port: number): Promise<packet.Answer[]> {
  let last: packet.Answer[] = [];
  for (const end = Date.now() + ANSWER_WITHIN_MS; Date.now() < end;) {
    last = await queryServer(port);
    if (last.some(({ type }) => type === 'RRSIG')) return last;
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
  }
  return last;
}

async function queryServer(port: number): Promise<packet.Answer[]> {
  const additionals = [{ type: 'OPT', name: '.', udpPayloadSize: 1232, flags: packet.DNSSEC_OK, options: [] }];
  const query = packet.encode({
    ...{ type: 'query', id: 1, flags: 0, questions: [{ type: 'A', name: `www.${ZONE}` }] },
    additionals: additionals as unknown as packet.Answer[],
  });
  const socket = createSocket('udp4');
  try {
    return await new Promise((resolve) => {
      setTimeout(() => resolve([]), ASK_EVERY_MS * 5);
      socket.on('message', (message) => resolve(packet.decode(message).answers ?? []));
      socket.send(query, port, '127.0.0.1');
    });
  } finally {
    socket.close();
  }
}
