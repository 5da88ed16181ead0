// The time from an answer of the API to an answer of the name server, in an installation with many zones.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import * as dgram from 'node:dgram';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as packet from 'dns-packet';
import type pg from 'pg';
import { startApi, type Server } from '../processes';
import { printLine } from '../run';
import { OPEN, withClient } from '../stage';
import { openEmbedded } from '../../../server/platform/embedded';
import { freePort } from './servers';

const RECORDS_EACH = 20;
const CHANGES = 101;
const ANSWER_WITHIN_MS = 10_000;

interface First {
  key: string;
  project_id: string;
}

export async function measureService(dataDir: string, count: number): Promise<void> {
  mkdirSync(dataDir, { mode: 0o711 });
  const database = await openEmbedded({ dataDir });
  const port = await freePort();
  const settings = { ...OPEN, DATABASE_URL: database.url, DNS_PORT: String(port), QUOTAS: '{"dns_zones":10000000}' };
  let api: Server | undefined;
  try {
    api = await startApi({ node: process.execPath }, dataDir, settings);
    const first = await firstKey(dataDir);
    const call = caller(api.port, first);
    const few = await measure(call, port, 'few');
    printLine(`from the API's answer to the wire, 1 zone: ${few}`);
    await withClient(database.url, (client) => insertZones(client, first.project_id, count));
    const begin = performance.now();
    await untilServed(port, `host1.many${count}.example.com`);
    printLine(`${count} zones that came at once are served after ${((performance.now() - begin) / 1000).toFixed(0)} s`);
    const many = await measure(call, port, 'many');
    printLine(`from the API's answer to the wire, ${count} zones: ${many}`);
  } finally {
    await api?.stop();
    await database.close();
  }
}

async function firstKey(dataDir: string): Promise<First> {
  const file = path.join(dataDir, 'first-key.json');
  while (!existsSync(file)) await sleep(100);
  return JSON.parse(readFileSync(file, 'utf8')) as First;
}

type Call = (path: string, body: object) => Promise<{ id: string }>;

function caller(port: number, { key, project_id }: First): Call {
  const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id, 'Content-Type': 'application/json' };
  return async (target, body) => {
    const url = `http://127.0.0.1:${port}${target}`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${target}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as { id: string };
  };
}

/** Repeatedly adds a record, and queries it until it is served. */
async function measure(call: Call, port: number, name: string): Promise<string> {
  const zone = await call('/v2/dns_zones', { name: `${name}.example.net` });
  const times: number[] = [];
  for (let turn = 0; turn < CHANGES; turn += 1) {
    await call(`/v2/dns_zones/${zone.id}/records`, { type: 'A', name: `a${turn}`, value: '192.0.2.1' });
    const begin = performance.now();
    await untilServed(port, `a${turn}.${name}.example.net`);
    times.push(performance.now() - begin);
    // So that each is a separate change.
    await sleep(50);
  }
  times.sort((a, b) => a - b);
  const at = (part: number): string => `${(times[Math.floor(part * (times.length - 1))] as number).toFixed(0)} ms`;
  return `median ${at(0.5)}, p99 ${at(0.99)} of ${CHANGES} changes`;
}

async function untilServed(port: number, name: string): Promise<void> {
  const socket = dgram.createSocket('udp4');
  const question = packet.encode({ type: 'query', id: 1, flags: 0, questions: [{ type: 'A', name }] });
  const served = new Promise<void>((resolve) =>
    socket.on('message', (bytes) => packet.decode(bytes).answers?.length && resolve()),
  );
  const timer = setInterval(() => socket.send(question, port, '127.0.0.1'), 2);
  try {
    await Promise.race([served, sleep(60 * ANSWER_WITHIN_MS, null, { ref: false })]);
  } finally {
    clearInterval(timer);
    socket.close();
  }
}

const ZONES = `insert into dns_zones (id, project_id, name, default_ttl, soa, label, name_servers, record_count,
    status, last_checked_at, created_at, updated_at)
  select 'dnz_' || lpad(n::text, 26, '0'), $2, 'many' || n || '.example.com', 300,
    '{"email":"hostmaster@example.com","refresh":7200,"retry":3600,"expire":1209600,"minimum":300}',
    'many' || n, '{ns1.example.net,ns2.example.net}', $3, 'active', now(), now() - interval '1 day', now()
  from generate_series(1, $1) n`;
const RECORDS = `insert into dns_records (id, project_id, dns_zone_id, name, type, value, created_at, updated_at)
  select 'dnr_' || lpad((z * 100 + n)::text, 26, '0'), $2, 'dnz_' || lpad(z::text, 26, '0'), 'host' || n, 'A',
    '192.0.2.' || n, now(), now()
  from generate_series($3::int, $4::int) z, generate_series(1, $1) n`;
const BATCH = 5_000;

async function insertZones(client: pg.Client, project: string, count: number): Promise<void> {
  await client.query('begin');
  await client.query(ZONES, [count, project, RECORDS_EACH]);
  for (let from = 1; from <= count; from += BATCH)
    await client.query(RECORDS, [RECORDS_EACH, project, from, Math.min(from + BATCH - 1, count)]);
  await client.query('commit');
}
