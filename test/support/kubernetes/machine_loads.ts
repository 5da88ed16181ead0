// Everything at once against an installation of several machines, with a ledger of what was acknowledged. A client
// knows the addresses of all machines, and repeats at the next one what the first did not answer.
import { Resolver } from 'node:dns/promises';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import type { TestApplication } from '../deployments/deploy';
import { API_PORT, DNS_PORT, INGRESS_PORT, SMTP_PORT, type ThreeMachines } from './three_machines';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
interface Done {
  /** ms of `performance.now()` at its end. */
  at: number;
  ms: number;
  /** Addresses that did not answer before one did. */
  repeated: number;
  /** null: no address has answered as it should. */
  value: string | null;
  /** What each of the addresses has answered, where none did as it should. */
  reason?: string;
}

export interface MachineLoads {
  /**
   * Requests to the application, API reads, API writes, DNS queries, mail and deployments, each in the order of their
   * ends.
   */
  readonly visits: Done[];
  readonly reads: Done[];
  readonly writes: Done[];
  readonly queries: Done[];
  /** `value` is the recipient. */
  readonly mails: Done[];
  /** `value` is the status of its end. */
  readonly deployments: Done[];
  stop(): Promise<void>;
}

const LANES = 6;
const ANSWER_MS = 3_000;
const CONNECT_MS = 1_000;
/** PostgreSQL ends transactions of a machine that has gone within it, and with them their locks. */
const AGAIN_MS = 40_000;
const ZONE = 'ledger.example.com';
const SENDER = 'sender.example';

/** The longest time without a success that touches the time since `from`, in ms. */
export function longestGap(all: readonly Done[], from: number): number {
  const successes = all.filter(({ value }) => value !== null).map(({ at }) => at);
  const before = successes.filter((at) => at < from).at(-1) ?? from;
  const times = [before, ...successes.filter((at) => at >= from)];
  return Math.max(...times.slice(1).map((at, index) => at - (times[index] as number)), 0);
}

export async function startMachineLoads(
  machines: ThreeMachines,
  application: TestApplication,
  push: () => void,
): Promise<MachineLoads & { zone: string }> {
  const zone = await machines.call('POST', '/v2/dns_zones', { body: { name: ZONE } });
  if (zone.status !== 201) throw new Error(zone.text);
  const relay = await makeRelayZone(machines);
  const ledger = { visits: [], reads: [], writes: [], queries: [], mails: [], deployments: [] } as Record<
    string,
    Done[]
  >;
  let isStopped = false;

  /** Asks one address after the other, beginning with another one each time, and all of them again for a while. */
  async function atAny(ask: (address: string) => Promise<string>, againForMs = 0): Promise<Omit<Done, 'at'>> {
    const [from, addresses] = [performance.now(), machines.addresses];
    const first = Math.floor(Math.random() * addresses.length);
    let reason = '';
    for (let tried = 0; tried < addresses.length || performance.now() - from < againForMs; tried += 1) {
      const address = addresses[(first + tried) % addresses.length] as string;
      const value = await ask(address).catch((error: Error) => {
        reason = `${reason}${address}: ${error.message}; `;
        return null;
      });
      if (value !== null) return { ms: performance.now() - from, repeated: tried, value };
    }
    return { ms: performance.now() - from, repeated: addresses.length, value: null, reason };
  }
  async function lane(name: string, pauseMs: number, next: () => Promise<Omit<Done, 'at'>>): Promise<void> {
    for (; !isStopped; await sleep(pauseMs)) {
      const done = await next();
      ledger[name]?.push({ at: performance.now(), ...done });
    }
  }
  const api = async (address: string, method: string, place: string, body?: object, once?: string): Promise<any> => {
    const response = await fetch(`http://${address}:${API_PORT}${place}`, {
      method,
      headers: {
        ...{ Authorization: `Bearer ${machines.access.key}`, 'X-Svc-Project': machines.access.project_id },
        ...(body && { 'Content-Type': 'application/json' }),
        ...(once && { 'Idempotency-Key': once }),
      },
      ...(body && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const answer: any = await response.json();
    if (response.status >= 300) throw new Error(`${method} ${place}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };

  let serial = 0;
  const lanes = [
    ...Array.from({ length: LANES }, () =>
      lane('visits', 20, () => atAny((address) => visit(address, application.host))),
    ),
    lane('reads', 50, () =>
      atAny(async (address) => (await api(address, 'GET', `/v2/applications/${application.id}`)).id),
    ),
    lane('writes', 200, () => {
      const name = `r${(serial += 1)}`;
      const record = { type: 'TXT', name, value: name };
      return atAny(
        async (address) =>
          String((await api(address, 'POST', `/v2/dns_zones/${zone.body.id}/records`, record, `ledger-${name}`)).name),
        AGAIN_MS,
      );
    }),
    lane('queries', 50, () => atAny(soaOf)),
    lane('mails', 300, () => {
      const to = `reader${(serial += 1)}@receiver.example`;
      return atAny((address) => sendMail(address, relay, to), AGAIN_MS);
    }),
    lane('deployments', 500, async () => {
      push();
      const from = performance.now();
      const place = `/v2/applications/${application.id}/deployments`;
      let id: string | null = null;
      const once = `deployment-${(serial += 1)}`;
      while (id === null)
        id = (await atAny(async (address) => String((await api(address, 'POST', place, {}, once)).id))).value;
      for (;;) {
        const asked = atAny(async (address) => String((await api(address, 'GET', `${place}/${id}`)).status));
        const { value } = await asked;
        if (value !== null && /active|superseded|failed|canceled/.test(value))
          return { ms: performance.now() - from, repeated: 0, value };
        await sleep(200);
      }
    }),
  ];
  return {
    ...(ledger as unknown as MachineLoads),
    zone: zone.body.id,
    async stop() {
      isStopped = true;
      await Promise.all(lanes);
    },
  };
}

function visit(address: string, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: address, port: INGRESS_PORT, headers: { host }, agent: false, timeout: 2 * ANSWER_MS };
    const request = http.get(options, (response) => {
      let body = '';
      response.on('data', (bytes: Buffer) => (body += bytes.toString()));
      response.on('end', () =>
        response.statusCode === 200 ? resolve(body) : reject(new Error(`${response.statusCode} ${body}`)),
      );
      response.on('error', reject);
    });
    // The whole machine is gone: nobody refuses the connection.
    request.once('socket', (socket) => {
      const late = setTimeout(() => socket.connecting && socket.destroy(new Error('no answer')), CONNECT_MS);
      socket.once('close', () => clearTimeout(late));
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', reject);
  });
}

async function soaOf(address: string): Promise<string> {
  const resolver = new Resolver({ timeout: CONNECT_MS, tries: 1 });
  resolver.setServers([`${address}:${DNS_PORT}`]);
  return String((await resolver.resolveSoa(ZONE)).serial);
}

async function makeRelayZone(machines: ThreeMachines): Promise<{ smtp_username: string; smtp_password: string }> {
  const domain = await machines.call('POST', '/v2/email_domains', { body: { name: SENDER } });
  if (domain.status !== 201) throw new Error(domain.text);
  // Its job, which finds no records of the domain, may not write over it.
  await machines.sql(
    `update email_domains set status = 'verified', lease_owner = 'nobody', lease_until = now() + interval '1 hour'`,
  );
  const body = { name: 'ledger', email_domain_ids: [domain.body.id] };
  const made = await machines.call('POST', '/v2/email_relay_zones', { body });
  if (made.status !== 201) throw new Error(made.text);
  return made.body;
}

/** Every third message is one that is not kept in its row. @returns its recipient */
async function sendMail(address: string, relay: { smtp_username: string; smtp_password: string }, to: string) {
  const transport = createTransport({
    ...{ host: address, port: SMTP_PORT, tls: { rejectUnauthorized: false } },
    ...{ connectionTimeout: CONNECT_MS, greetingTimeout: ANSWER_MS, socketTimeout: ANSWER_MS },
    auth: { user: relay.smtp_username, pass: relay.smtp_password },
  });
  const text = 'x\n'.repeat(Number(/\d+/.exec(to)) % 3 ? 100 : 25_000);
  await transport.sendMail({ from: `shop@${SENDER}`, to, subject: to, text });
  return to;
}
