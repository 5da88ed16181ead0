// The S3 endpoint beside a bare server of Node that streams the same files, or writes and syncs them: bytes a second,
// as ratios of rounds in turn. Then lists out of a small and a large bucket, and memory while many clients move much.
//   npm run bench:object_storage -- [--rows=10000000] [--move-mb=1024] [--seconds=4] [--rounds=5] [--profile=<folder>]
//     [--only=<part of the name of a case, memory or lists>]
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { signedHeaders, UNSIGNED_PAYLOAD } from '../../../core/protocols/sigv4';
import { median } from '../measure';
import { startWorld, type World } from './object_storage_world';
import { ratioOf, verdictOf } from '../report';

const MIB = 2 ** 20;
const SMALL_ROWS = 10_000;
const LISTS = 40;
const SIGNED_MS = 60_000;
const GROUPS = 2_000;
const FILL_ROWS = 500_000;
const LIST_TARGET = 1.2;
const MEMORY_CLIENTS = 64;
const MEMORY_TARGET_MB = 300;

interface Case {
  name: string;
  method: 'GET' | 'PUT';
  bytes: number;
  connections: number;
  target: number;
}
const CASES: Case[] = [
  { name: 'GET, 4 KB', method: 'GET', bytes: 4096, connections: 16, target: 0.4 },
  { name: 'GET, 1 MB', method: 'GET', bytes: MIB, connections: 8, target: 0.85 },
  { name: 'GET, 100 MB', method: 'GET', bytes: 100 * MIB, connections: 4, target: 0.85 },
  { name: 'PUT, 1 MB', method: 'PUT', bytes: MIB, connections: 8, target: 0.6 },
];

interface Shot {
  url: URL;
  method: string;
  headers: http.OutgoingHttpHeaders;
  body?: Buffer;
}

/** Sends one request and throws its answer away. @returns bytes of content that moved */
function shoot(agent: http.Agent, { url, method, headers, body }: Shot): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent }, (response) => {
      let bytes = body?.length ?? 0;
      response.on('data', (piece: Buffer) => (bytes += body ? 0 : piece.length));
      response.on('end', () =>
        (response.statusCode ?? 500) < 300
          ? resolve(bytes)
          : reject(new Error(`${method} ${url.pathname}: ${response.statusCode}`)),
      );
      response.on('error', reject);
    });
    request.on('error', reject).end(body);
  });
}

/** @returns bytes per second */
async function load(next: (index: number) => Shot, connections: number, seconds: number): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const begin = performance.now();
  const end = begin + seconds * 1000;
  let bytes = 0;
  const worker = async (index: number): Promise<void> => {
    while (performance.now() < end) {
      // Not `bytes += await …`: it reads the old value before the await, and loses concurrent additions.
      const moved = await shoot(agent, next(index));
      bytes += moved;
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, index) => worker(index)));
  agent.destroy();
  return (bytes / (performance.now() - begin)) * 1000;
}

function signed({ endpoint, credentials, bucket }: World, method: string, key: string, body?: Buffer): Shot {
  const url = new URL(`${endpoint}/${bucket.name}${key}`);
  const headers = signedHeaders({ method, url, credentials, payloadHash: UNSIGNED_PAYLOAD, region: 'local' });
  return {
    url,
    method,
    headers: { ...headers, ...(body && { 'content-length': body.length }) },
    ...(body && { body }),
  };
}

/** A signature holds for a quarter of an hour, and making it is work of the client: each worker signs now and then. */
function keptFor(ms: number, make: (index: number) => Shot): (index: number) => Shot {
  const kept = new Map<number, { shot: Shot; until: number }>();
  return (index) => {
    const found = kept.get(index);
    if (found && found.until > performance.now()) return found.shot;
    const shot = make(index);
    kept.set(index, { shot, until: performance.now() + ms });
    return shot;
  };
}

async function compare(world: World, { name, method, bytes, connections, target }: Case, plan: Plan): Promise<void> {
  const content = randomBytes(bytes);
  const agent = new http.Agent();
  await shoot(agent, signed(world, 'PUT', '/file', content));
  writeFileSync(path.join(world.directory, 'file'), content);
  const body = method === 'PUT' ? content : undefined;
  const length = body && { 'content-length': body.length };
  const ours = keptFor(SIGNED_MS, (index) => signed(world, method, method === 'PUT' ? `/put-${index}` : '/file', body));
  const theirs = (index: number): Shot => ({
    ...{ method, headers: { ...length }, ...(body && { body }) },
    url: new URL(`http://127.0.0.1:${world.bare.port}/${method === 'PUT' ? `put-${index}` : 'file'}`),
  });
  const rates: { ours: number; theirs: number }[] = [];
  for (let round = 0; round <= plan.rounds; round += 1) {
    const rate = { ours: 0, theirs: 0 };
    const order = round % 2 ? (['ours', 'theirs'] as const) : (['theirs', 'ours'] as const);
    for (const side of order) rate[side] = await load(side === 'ours' ? ours : theirs, connections, plan.seconds);
    if (round) rates.push(rate);
  }
  const show = (side: 'ours' | 'theirs'): string => `${(median(rates.map((one) => one[side])) / MIB).toFixed(1)} MB/s`;
  const ratios = rates.map((one) => one.ours / one.theirs);
  const { target: goal, verdict } = verdictOf(median(ratios), 'at least', target);
  print(`${name} | ${show('ours')} | ${show('theirs')} | ${ratioOf(ratios)} | ${goal} | ${verdict}`);
}

/** 1000 entries from the middle of a bucket: keys, or groups of them. Small and large in turn, so load meets both. */
async function compareLists(world: World, rows: number): Promise<void> {
  await fillBucket(world, world.small.id, SMALL_ROWS);
  await fillBucket(world, world.bucket.id, rows);
  await world.sql.query('vacuum analyze bucket_objects');
  const agent = new http.Agent({ keepAlive: true });
  for (const delimiter of ['', '&delimiter=%2F']) {
    const times = { small: [] as number[], large: [] as number[] };
    for (let turn = 0; turn < LISTS; turn += 1)
      for (const [name, bucket, count] of [
        ['small', world.small, SMALL_ROWS],
        ['large', world.bucket, rows],
      ] as const) {
        const after = encodeURIComponent(keyOf(Math.floor(delimiter ? 1 : count / 2), count));
        const query = `?list-type=2&max-keys=1000${delimiter}&start-after=${after}`;
        const begin = performance.now();
        await shoot(agent, signed({ ...world, bucket }, 'GET', query));
        if (turn >= LISTS / 4) times[name].push(performance.now() - begin);
      }
    const ratios = times.large.map((ms, index) => ms / (times.small[index] as number));
    const { target, verdict } = verdictOf(median(ratios), 'at most', LIST_TARGET);
    const shown = (list: number[]): string => `${median(list).toFixed(1)} ms`;
    print(
      `list of 1000${delimiter && ' groups'} out of ${rows} beside ${SMALL_ROWS} | ${shown(times.large)} | ` +
        `${shown(times.small)} | ${median(ratios).toFixed(2)} | ${target} | ${verdict}`,
    );
  }
  agent.destroy();
}

/** A thousand groups, however many keys. */
function keyOf(n: number, count: number): string {
  const padded = (number: number): string => String(number).padStart(9, '0');
  return `group-${padded(Math.floor(n / (count / GROUPS)))}/key-${padded(n)}`;
}

async function fillBucket(world: World, bucketId: string, count: number): Promise<void> {
  await world.sql.query('set synchronous_commit = off');
  for (let from = 1; from <= count; from += FILL_ROWS)
    await world.sql.query(
      `insert into bucket_objects (bucket_id, key, version_id, is_latest, is_delete_marker, size, etag, modified_at,
        metadata) select $1, 'group-' || lpad((n / $2::int)::text, 9, '0') || '/key-' || lpad(n::text, 9, '0'), 'null',
        true, false, 0, 'd41d8cd98f00b204e9800998ecf8427e', now(), '{"headers": {}, "user": {}}'
        from generate_series($3::int, $4::int) n`,
      [bucketId, count / GROUPS, from, Math.min(count, from + FILL_ROWS - 1)],
    );
}

/** Half of the clients upload, half of them download. */
async function memory(world: World, moveMb: number): Promise<void> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: MEMORY_CLIENTS });
  const piece = randomBytes(16 * MIB);
  await shoot(agent, signed(world, 'PUT', '/moved', piece));
  const before = (await world.service.usage()).rss;
  let most = before;
  const timer = setInterval(() => void world.service.usage().then(({ rss }) => (most = Math.max(most, rss))), 100);
  const client = async (index: number): Promise<void> => {
    for (let moved = 0; moved < moveMb; moved += 16)
      await shoot(agent, index % 2 ? signed(world, 'GET', '/moved') : signed(world, 'PUT', `/m-${index}`, piece));
  };
  await Promise.all(Array.from({ length: MEMORY_CLIENTS }, (_, index) => client(index)));
  clearInterval(timer);
  agent.destroy();
  const { target, verdict } = verdictOf(most / MIB, 'below', MEMORY_TARGET_MB, ' MB');
  const mb = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MB`;
  print(
    `resident while ${MEMORY_CLIENTS} clients move ${moveMb} MB each | ${mb(most)} | before: ${mb(before)} | | ` +
      `${target} | ${verdict}`,
  );
}

interface Plan {
  rounds: number;
  seconds: number;
}

function print(line: string): void {
  process.stdout.write(`| ${line} |\n`);
}

async function main(): Promise<void> {
  const options = { type: 'string' } as const;
  const names = {
    ...{ rows: options, 'move-mb': options, seconds: options, rounds: options, profile: options },
    only: options, // part of the name of a case
  };
  const { values } = parseArgs({ options: names });
  const plan = { rounds: Number(values.rounds ?? 5), seconds: Number(values.seconds ?? 4) };
  const world = await startWorld(values.profile);
  try {
    print(
      `measure, load ${os.loadavg()[0]?.toFixed(1)} on ${os.cpus().length} cores | ours | bare | ratio | target | `,
    );
    print('--- | --- | --- | --- | --- | ---');
    for (const one of CASES) if (one.name.includes(values.only ?? '')) await compare(world, one, plan);
    const has = (name: string): boolean => (values.only ?? name) === name;
    if (has('memory')) await memory(world, Number(values['move-mb'] ?? 1024));
    if (has('lists')) await compareLists(world, Number(values.rows ?? 10_000_000));
  } finally {
    await world.stop();
  }
}

void main();
