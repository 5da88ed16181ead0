// What the installation of the measurement has in it, and whether it is there.
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { createReadStream } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as packet from 'dns-packet';
import pg from 'pg';
import { createClient } from '@redis/client';
import type { Resource } from '../../demo/api';
import { ZONE, type Parent } from '../../demo/dns';
import type { Stage } from '../../demo/stage';

type Zone = Resource & { name_servers: string[] };

const OBJECT_BYTES = 8 * 2 ** 20;
const KEYS = 10_000;
const CONNECTED_WITHIN_MS = 180_000;
const WORK_WITHIN_MS = 600_000;
export interface Site {
  application: Resource;
  volume: string;
  bucket: string;
  objects: string[];
  postgresql: string;
  redis: string;
  zone: string;
}

/** What must be the same on the restored machine. */
export interface Inventory {
  files: Record<string, string>;
  objects: Record<string, string>;
  rows: unknown;
  keys: number;
  answer: string;
  page: string;
  variables: string;
}

/** @param parent of its zone */
export async function fillSite(stage: Stage, gigabytes: number, parent: Parent): Promise<Site> {
  const { api } = stage;
  const share = (gigabytes * 2 ** 30) / 3;
  // Rows are written twice, and their log once more.
  const diskGb = Math.max(1, Math.ceil(gigabytes * 2));
  const [application, volume, bucket, postgresql, redis, zone] = await Promise.all([
    api.call('POST', '/v2/applications', { name: 'shop', preset: 'node-web' }),
    api.call('POST', '/v2/volumes', { name: 'files', size_gb: Math.max(1, Math.ceil(gigabytes)) }),
    api.call('POST', '/v2/buckets', { name: `restored-${randomBytes(4).toString('hex')}` }),
    api.call('POST', '/v2/databases', { name: 'orders', engine: 'postgresql', storage_gb: diskGb }),
    api.call('POST', '/v2/databases', { name: 'cache', engine: 'redis' }),
    api.call<Zone>('POST', '/v2/dns_zones', { name: ZONE }),
  ]);
  parent.delegate(zone.name_servers);
  await api.call('POST', `/v2/dns_zones/${zone.id}/verify`);
  await api.call('POST', `/v2/dns_zones/${zone.id}/records`, { type: 'A', name: 'www', value: '192.0.2.10' });
  await api.call('PUT', `/v2/applications/${application.id}/env/GREETING`, { value: 'Good morning' });
  await api.until(`/v2/volumes/${volume.id}`, ({ status }) => status === 'available', WORK_WITHIN_MS);
  await api.call('PATCH', `/v2/volumes/${volume.id}`, { application_id: application.id, mount_path: '/data' });
  const { id } = await api.call('POST', `/v2/applications/${application.id}/deployments`, {});
  const deployment = `/v2/applications/${application.id}/deployments/${id}`;
  await api.until(deployment, ({ status }) => status === 'active', WORK_WITHIN_MS);
  for (const { id: database } of [postgresql, redis])
    await api.until(`/v2/databases/${database}`, ({ status }) => status === 'available', WORK_WITHIN_MS);
  const site = {
    ...{ application, volume: volume.id, bucket: bucket.id, postgresql: postgresql.id, redis: redis.id },
    ...{ objects: [] as string[], zone: zone.id },
  };
  await writeFiles(path.join(stage.directory, 'volumes', volume.id, 'data'), share);
  for (let written = 0; written < share; written += OBJECT_BYTES) {
    const key = `object-${site.objects.push(`object-${site.objects.length}`)}`;
    site.objects[site.objects.length - 1] = key;
    const body = randomBytes(Math.min(OBJECT_BYTES, share));
    const { status } = await fetch(await presigned(stage, site, key, 'PUT'), { method: 'PUT', body });
    if (status !== 200) throw new Error(`an upload was answered ${status}`);
  }
  await rowsOf(stage, site, async (client) => {
    const rows = Math.ceil(share / 1024);
    await client.query('create table orders (number int, text text)');
    await client.query(
      `insert into orders select n, (select string_agg(md5(n::text || i), '') from generate_series(1, 30) i)
         from generate_series(1, $1::int) n`,
      [rows],
    );
  });
  await keysOf(stage, site, (client) =>
    client.mSet(Array.from({ length: KEYS }, (_, number) => [`key-${number}`, `value ${number}`] as [string, string])),
  );
  return site;
}

async function writeFiles(directory: string, bytes: number): Promise<void> {
  const [big, small] = [bytes * 0.9, bytes * 0.1];
  const file = await open(path.join(directory, 'big'), 'w');
  for (let written = 0; written < big; written += OBJECT_BYTES) await file.write(randomBytes(OBJECT_BYTES));
  await file.close();
  for (let written = 0, number = 0; written < small; written += 20_000, number += 1) {
    const one = await open(path.join(directory, `small-${number}`), 'w');
    await one.write(randomBytes(20_000));
    await one.close();
  }
}

export async function inventoryOf(stage: Stage, site: Site, ports: { dns: number }): Promise<Inventory> {
  const { api } = stage;
  const objects: Record<string, string> = {};
  for (const key of site.objects) {
    const response = await fetch(await presigned(stage, site, key, 'GET'));
    objects[key] = hash(Buffer.from(await response.arrayBuffer()));
  }
  const variables = JSON.stringify(await api.call('GET', `/v2/applications/${site.application.id}/env`));
  const rows = await rowsOf(stage, site, async (client) => {
    const found = await client.query(`select count(*), sum(number), sum(hashtext(text)) as sum_of_texts from orders`);
    return found.rows as unknown;
  });
  return {
    ...{ objects, rows, variables },
    files: await hashesOf(path.join(stage.directory, 'volumes', site.volume, 'data')),
    keys: await keysOf(stage, site, (client) => client.dbSize()),
    answer: await answerOf(ports.dns),
    page: await pageOf(stage, site),
  };
}

async function presigned({ api }: Stage, { bucket }: Site, key: string, method: string): Promise<string> {
  return (await api.call<{ url: string }>('POST', `/v2/buckets/${bucket}/presign`, { key, method })).url;
}

async function rowsOf<T>(stage: Stage, site: Site, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const connectionString = await addressOf(stage, site.postgresql);
  const client = await retried(async () => {
    const made = new pg.Client({ connectionString });
    return made.connect().then(() => made);
  });
  return work(client).finally(() => client.end());
}

async function keysOf<T>(
  stage: Stage,
  site: Site,
  work: (client: ReturnType<typeof createClient>) => Promise<T>,
): Promise<T> {
  const url = await addressOf(stage, site.redis);
  const socket = url.startsWith('rediss:') ? { tls: true as const, rejectUnauthorized: false } : {};
  const client = await retried(() =>
    createClient({ url, socket: { ...socket, reconnectStrategy: false }, disableClientInfo: true })
      .on('error', () => undefined)
      .connect(),
  );
  return work(client as never).finally(() => client.destroy());
}

/** The way to a database is opened a moment after it is available. */
async function retried<T>(connect: () => Promise<T>): Promise<T> {
  for (const end = Date.now() + CONNECTED_WITHIN_MS; ; await sleep(200)) {
    const connected = await connect().catch((error: Error) => (Date.now() > end ? Promise.reject(error) : null));
    if (connected !== null) return connected;
  }
}

async function addressOf({ api }: Stage, database: string): Promise<string> {
  const { endpoints } = await api.call<{ endpoints: { connection_string: string }[] }>(
    'GET',
    `/v2/databases/${database}/credentials`,
  );
  return (endpoints[0]?.connection_string ?? '').replace('sslmode=require', 'sslmode=no-verify');
}

/** The page of the application by its name, once it is answered. */
export async function pageOf({ port }: Stage, { application }: Site): Promise<string> {
  for (const end = Date.now() + WORK_WITHIN_MS; ; await sleep(100)) {
    const answer = await get(port, String(application.default_hostname)).catch(() => '');
    // The page tells how long the application has run.
    if (answer.startsWith('HTTP/1.1 200')) return /<title>.*<\/title>/.exec(answer)?.[0] ?? answer;
    if (Date.now() > end) throw new Error(`the application answers ${answer.slice(0, 200)}`);
  }
}

function get(port: number, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
    );
    let text = '';
    socket.on('data', (chunk) => (text += chunk.toString()));
    socket.on('end', () => resolve(text)).on('error', reject);
  });
}

async function answerOf(port: number): Promise<string> {
  const socket = createSocket('udp4');
  const asked = { type: 'A' as const, name: `www.${ZONE}` };
  const question = { type: 'query' as const, id: 1, questions: [asked] };
  try {
    return await new Promise((resolve) => {
      const ask = (): void => socket.send(packet.encode(question), port, '127.0.0.1');
      const timer = setInterval(ask, 500);
      socket.on('message', (message) => {
        clearInterval(timer);
        resolve(JSON.stringify(packet.decode(message).answers?.map((one) => ('data' in one ? one.data : ''))));
      });
      setTimeout(() => (clearInterval(timer), resolve('none')), 20_000).unref();
      ask();
    });
  } finally {
    socket.close();
  }
}

async function hashesOf(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const name of (await readdir(directory)).sort()) {
    const sum = createHash('sha256');
    for await (const chunk of createReadStream(path.join(directory, name))) sum.update(chunk as Buffer);
    found[name] = sum.digest('hex');
  }
  return found;
}

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Whether a notifier is there. */
export async function hasNotifier({ api }: Stage, name: string): Promise<boolean> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: { name: string }[]; next_cursor: string | null } = await api.call(
      'GET',
      `/v2/notifiers?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    if (page.data.some((one) => one.name === name)) return true;
    cursor = page.next_cursor;
  }
  return false;
}

const EMAIL = 'ada@example.com';
const PASSWORD = 'a password of the measurement';

export function makeUser({ directory }: Stage, operator: string): void {
  const env = { ...process.env, PLATFORM_DATA_DIR: directory, NODE_ENV: 'production' };
  const words = [operator, 'user', 'create', '--email', EMAIL, '--name', 'Ada', '--password-stdin'];
  execFileSync(process.execPath, words, { env, input: PASSWORD, stdio: ['pipe', 'ignore', 'inherit'] });
}

export async function logIn({ address }: Stage): Promise<boolean> {
  const query = 'mutation ($input: LoginInput!) { login(input: $input) { user { email } } }';
  const response = await fetch(`${address}/graphql`, {
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json', Origin: address } },
    body: JSON.stringify({ query, variables: { input: { email: EMAIL, password: PASSWORD } } }),
  });
  return (await response.text()).includes(`"email":"${EMAIL}"`);
}
