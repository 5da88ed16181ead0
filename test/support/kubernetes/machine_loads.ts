// Everything at once against an installation of several machines, with a ledger of what was acknowledged. A client
// knows all addresses, and repeats at the next one what the first did not answer.
import { Resolver } from 'node:dns/promises';
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createTransport } from 'nodemailer';
import type { TestApplication, Workplace } from '../deployments/deploy';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
export interface Done {
  /** ms of `performance.now()` at its end. */
  at: number;
  ms: number;
  /** Addresses that did not answer before one did. */
  repeated: number;
  /** null: no address has answered as it should. */
  value: string | null;
  /** What was answered before, or instead. */
  reason?: string;
}

/** Each is a host and a port; those of a role are equals. */
interface Endpoints {
  api: readonly string[];
  ingress: readonly string[];
  dns: readonly string[];
  smtp: readonly string[];
}

/** What is loaded. */
export interface LoadedInstallation extends Workplace {
  endpoints: Endpoints;
  access: { key: string; project_id: string };
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** Asks one address after the other, beginning with another one each time, and all of them again for a while. */
type AskAny = (
  addresses: readonly string[],
  ask: (address: string) => Promise<string>,
  againForMs?: number,
) => Promise<Omit<Done, 'at'>>;

/** A load of a test beside those of all. */
export interface FurtherLoad {
  name: string;
  pauseMs: number;
  next(atAny: AskAny): Promise<Omit<Done, 'at'>>;
}

export interface MachineLoads {
  /** By their names. */
  readonly further: Readonly<Record<string, Done[]>>;
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
  machines: LoadedInstallation,
  application: TestApplication,
  push: () => void,
  further: readonly FurtherLoad[] = [],
): Promise<MachineLoads & { zone: string }> {
  const zone = await machines.call('POST', '/v2/dns_zones', { body: { name: ZONE } });
  if (zone.status !== 201) throw new Error(zone.text);
  const relay = await makeRelayZone(machines);
  const ledger = { visits: [], reads: [], writes: [], queries: [], mails: [], deployments: [] } as Record<
    string,
    Done[]
  >;
  const furtherLedger: Record<string, Done[]> = {};
  let isStopped = false;

  const atAny: AskAny = async (addresses, ask, againForMs = 0) => {
    const from = performance.now();
    const first = Math.floor(Math.random() * addresses.length);
    let reason = '';
    for (let tried = 0; tried < addresses.length || performance.now() - from < againForMs; tried += 1) {
      const address = addresses[(first + tried) % addresses.length] as string;
      const value = await ask(address).catch((error: Error) => {
        reason = `${reason}${address}: ${error.message}; `;
        return null;
      });
      if (value !== null) return { ms: performance.now() - from, repeated: tried, value, ...(reason && { reason }) };
    }
    return { ms: performance.now() - from, repeated: addresses.length, value: null, reason };
  };
  async function lane(name: string, pauseMs: number, next: () => Promise<Omit<Done, 'at'>>): Promise<void> {
    for (; !isStopped; await sleep(pauseMs)) {
      const done = await next();
      (ledger[name] ?? (furtherLedger[name] ??= [])).push({ at: performance.now(), ...done });
    }
  }
  const api = async (address: string, method: string, place: string, body?: object, once?: string): Promise<any> => {
    const response = await fetch(`http://${address}${place}`, {
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

  const { endpoints } = machines;
  let serial = 0;
  const lanes = [
    ...Array.from({ length: LANES }, () =>
      lane('visits', 20, () => atAny(endpoints.ingress, (address) => visit(address, application.host))),
    ),
    lane('reads', 50, () =>
      atAny(endpoints.api, async (address) => (await api(address, 'GET', `/v2/applications/${application.id}`)).id),
    ),
    lane('writes', 200, () => {
      const name = `r${(serial += 1)}`;
      const record = { type: 'TXT', name, value: name };
      return atAny(
        endpoints.api,
        async (address) =>
          String((await api(address, 'POST', `/v2/dns_zones/${zone.body.id}/records`, record, `ledger-${name}`)).name),
        AGAIN_MS,
      );
    }),
    lane('queries', 50, () => atAny(endpoints.dns, soaOf)),
    lane('mails', 300, () => {
      const to = `reader${(serial += 1)}@receiver.example`;
      return atAny(endpoints.smtp, (address) => sendMail(address, relay, to), AGAIN_MS);
    }),
    lane('deployments', 500, async () => {
      push();
      const from = performance.now();
      const place = `/v2/applications/${application.id}/deployments`;
      let id: string | null = null;
      const once = `deployment-${(serial += 1)}`;
      while (id === null)
        id = (await atAny(endpoints.api, async (address) => String((await api(address, 'POST', place, {}, once)).id)))
          .value;
      for (;;) {
        const readStatus = async (address: string) => String((await api(address, 'GET', `${place}/${id}`)).status);
        const { value } = await atAny(endpoints.api, readStatus);
        if (value !== null && /active|superseded|failed|canceled/.test(value))
          return { ms: performance.now() - from, repeated: 0, value };
        await sleep(200);
      }
    }),
    ...further.map(({ name, pauseMs, next }) => lane(name, pauseMs, () => next(atAny))),
  ];
  return {
    ...(ledger as unknown as MachineLoads),
    further: furtherLedger,
    zone: zone.body.id,
    async stop() {
      isStopped = true;
      await Promise.all(lanes);
    },
  };
}

export function visit(address: string, host: string, place = '/'): Promise<string> {
  return new Promise((resolve, reject) => {
    const [name, port] = address.split(':');
    const options = { host: name, port, path: place, headers: { host }, agent: false, timeout: 2 * ANSWER_MS };
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
  resolver.setServers([address]);
  return String((await resolver.resolveSoa(ZONE)).serial);
}

async function makeRelayZone(machines: LoadedInstallation): Promise<{ smtp_username: string; smtp_password: string }> {
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
    ...{ host: address.split(':')[0], port: Number(address.split(':')[1]), tls: { rejectUnauthorized: false } },
    ...{ connectionTimeout: CONNECT_MS, greetingTimeout: ANSWER_MS, socketTimeout: ANSWER_MS },
    auth: { user: relay.smtp_username, pass: relay.smtp_password },
  });
  const text = 'x\n'.repeat(Number(/\d+/.exec(to)) % 3 ? 100 : 25_000);
  await transport.sendMail({ from: `shop@${SENDER}`, to, subject: to, text });
  return to;
}
