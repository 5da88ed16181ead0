// npm run bench:email: messages through submission, queue and delivery, beside Postfix on the same machine, with the
// same client and the same receiver (smtp-sink): messages a second as ratios, and the memory of the service.
//   npm run bench:email -- [--count=10000] [--connections=20] [--bytes=4096]
// Service, database, Postfix, client and receiver are separate processes. Postfix needs root.
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { issueServerCertificate, newAuthority } from '../../../drivers/certificates/authority';
import { openEmbedded } from '../../../server/platform/embedded';
import type { ClientPlan } from './email_client';
import { hasPostfix, startPostfix } from './postfix';
import { startApi, type Server } from '../processes';
import { printLine, runBench } from '../run';
import { OPEN, withClient } from '../stage';
import { freePort } from '../../../test/support/processes/free_port';

const DOMAIN = 'bench.example';
const SINK = '/usr/sbin/smtp-sink';
const WARM_UP = 500;
const POLL_MS = 50;

interface Options {
  count: number;
  connections: number;
  bytes: number;
}

interface Result {
  accepted: number;
  delivered: number;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { count: { type: 'string' }, connections: { type: 'string' }, bytes: { type: 'string' } },
  });
  const options = {
    ...{ count: Number(values.count ?? 10_000), connections: Number(values.connections ?? 20) },
    bytes: Number(values.bytes ?? 4096),
  };
  if (!hasPostfix) throw new Error('Postfix is not installed, or this is not root');
  const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-email-'));
  chmodSync(directory, 0o711); // as root, the database runs as another user
  const sinkPort = await freePort();
  const sink = spawn(SINK, ['-u', 'nobody', `127.0.0.1:${sinkPort}`, '1024'], { stdio: 'ignore' });
  try {
    const load = os.loadavg()[0]?.toFixed(1);
    printLine(`Node ${process.version}, ${os.cpus().length} cores, load ${load}; ${options.count} messages of`);
    printLine(`${options.bytes} bytes over ${options.connections} connections with TLS, to 20 destinations`);
    const postfix = await ofPostfix(directory, sinkPort, options);
    const own = await ofService(directory, sinkPort, options);
    for (const [name, what] of Object.entries({ accepted: 'submission', delivered: 'to the receiver' }))
      printLine(ratioOf(what, own[name as keyof Result], postfix[name as keyof Result]));
  } finally {
    sink.kill();
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

function ratioOf(what: string, own: number, postfix: number): string {
  return `${what}: ${Math.round(own)}/s, Postfix ${Math.round(postfix)}/s, ratio ${(own / postfix).toFixed(2)}`;
}

async function ofPostfix(directory: string, sinkPort: number, options: Options): Promise<Result> {
  const authority = await newAuthority('Bench');
  const { key, certificate } = await issueServerCertificate(authority, ['localhost']);
  const tls = { key: path.join(directory, 'key.pem'), cert: path.join(directory, 'cert.pem') };
  writeFileSync(tls.key, key, { mode: 0o600 });
  writeFileSync(tls.cert, certificate);
  const postfix = await startPostfix({ port: await freePort(), relayhost: `[127.0.0.1]:${sinkPort}`, tls });
  try {
    const plan = { ...options, port: postfix.port, from: `a@${DOMAIN}`, login: null };
    const isEmpty = async (): Promise<boolean> => postfix.queued() === 0;
    await measure({ ...plan, count: WARM_UP }, isEmpty);
    return await measure(plan, isEmpty);
  } finally {
    await postfix.close();
  }
}

async function ofService(directory: string, sinkPort: number, options: Options): Promise<Result> {
  const dataDir = path.join(directory, 'data');
  const database = await openEmbedded({ dataDir });
  const port = await freePort();
  const settings = {
    ...{ ...OPEN, DATABASE_URL: database.url, DNS_PORT: '0', S3_PORT: '0', REGISTRY_PORT: '0', INGRESS_PORT: '0' },
    ...{
      SMTP_PORTS: String(port),
      MX_PORT: '0',
      SMTP_URL: `smtp://127.0.0.1:${sinkPort}`,
      ALLOW_PRIVATE_ADDRESSES: '1',
    },
  };
  let api: Server | undefined;
  try {
    const server = (api = await startApi({ node: process.execPath }, dataDir, settings));
    return await withClient(database.url, async (client) => {
      const login = await newZone(client, server, dataDir);
      const plan = { ...options, port, from: `a@${DOMAIN}`, login };
      const isEmpty = async (): Promise<boolean> => {
        const { rows } = await client.query(`select 1 from email_deliveries where next_at is not null limit 1`);
        return rows.length === 0;
      };
      await measure({ ...plan, count: WARM_UP }, isEmpty);
      const memory = watchMemory(server.pid);
      const before = await server.usage();
      const result = await measure(plan, isEmpty);
      const ms = (((await server.usage()).cpu - before.cpu) * 1000) / options.count;
      printLine(`processor of the service: ${ms.toFixed(2)} ms a message`);
      printLine(`memory of the service: ${memory.before} MB before, ${memory.most()} MB at most`);
      const { rows } = await client.query('select status, count(*)::int from email_deliveries group by status');
      printLine(`recipients: ${JSON.stringify(rows)}`);
      return result;
    });
  } finally {
    await api?.stop();
    await database.close();
  }
}

/** A zone of a domain that counts as verified. @returns for AUTH PLAIN */
async function newZone(client: pg.Client, { port }: Server, dataDir: string): Promise<string> {
  const { key, project_id } = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as {
    key: string;
    project_id: string;
  };
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' };
  const post = async (where: string, body: object): Promise<Record<string, string>> => {
    const response = await fetch(`http://127.0.0.1:${port}${where}`, {
      ...{ method: 'POST', headers, body: JSON.stringify(body) },
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${where}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, string>;
  };
  const domain = await post('/v2/email_domains', { name: DOMAIN });
  // A step of the loop that has begun before would write its own status.
  const verify = `update email_domains set status = 'verified', verified_at = now(), next_at = null
    where id = $1 and last_checked_at is not null and lease_until is null`;
  while (!(await client.query(verify, [domain.id])).rowCount) await sleep(POLL_MS);
  const zone = await post('/v2/email_relay_zones', {
    ...{ name: 'bench', email_domain_ids: [domain.id], daily_limit: 1_000_000 },
  });
  return Buffer.from(`\0${zone.smtp_username}\0${zone.smtp_password}`).toString('base64');
}

/** Messages a second until all are acknowledged, and until the queue is empty. */
async function measure(plan: ClientPlan, isEmpty: () => Promise<boolean>): Promise<Result> {
  const began = performance.now();
  const ms = await runClient(plan);
  while (!(await isEmpty())) await sleep(POLL_MS);
  const all = performance.now() - began;
  return { accepted: (plan.count / ms) * 1000, delivered: (plan.count / all) * 1000 };
}

async function runClient(plan: ClientPlan): Promise<number> {
  const child: ChildProcess = fork(path.join(__dirname, 'email_client.js'));
  child.send(plan);
  const [{ ms, error }] = (await once(child, 'message')) as [{ ms?: number; error?: string }];
  if (ms === undefined) throw new Error(error);
  return ms;
}

function watchMemory(pid: number): { before: number; most(): number } {
  const now = (): number =>
    Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
  const before = now();
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, now())), 100);
  return {
    before,
    most() {
      clearInterval(timer);
      return most;
    },
  };
}

runBench(main);
