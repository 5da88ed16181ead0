// npm run bench:monitors: ten thousand observers at an interval of 30 s in one worker, and how late their checks are.
//   npm run bench:monitors -- [--count=10000] [--seconds=90]
// Service, database and target are separate processes on this machine.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type pg from 'pg';
import { openEmbedded } from '../../../server/platform/embedded';
import { nextObserverCheckMs } from '../../../models/observers/observer/schedule';
import { startApi, type Server } from '../processes';
import { printLine } from '../run';
import { OPEN, withClient } from '../stage';

const INTERVAL_SECONDS = 30;
const INTERVAL_MS = INTERVAL_SECONDS * 1000;
/** Until the checks, all of them due at once in the beginning, have spread over the interval. */
const SETTLE_MS = 2 * INTERVAL_MS;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { count: { type: 'string' }, seconds: { type: 'string' } } });
  const [count, seconds] = [Number(values.count ?? 10_000), Number(values.seconds ?? 90)];
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-monitors-'));
  chmodSync(dataDir, 0o711); // as root, the database runs as another user
  const target = fork(__filename, ['target']);
  const [port] = (await once(target, 'message')) as [number];
  const database = await openEmbedded({ dataDir });
  const settings = { ...OPEN, DATABASE_URL: database.url, ALLOW_PRIVATE_ADDRESSES: '1', DNS_PORT: '0' };
  let api: Server | undefined;
  try {
    const server = await startApi({ node: process.execPath }, dataDir, settings);
    api = server;
    printLine(
      `Node ${process.version}, ${os.cpus().length} cores, load ${os.loadavg()[0]?.toFixed(1)}; ` +
        `${count} observers every ${INTERVAL_SECONDS} s, measured for ${seconds} s`,
    );
    await withClient(database.url, (client) => measure(client, server, { count, seconds, port }));
  } finally {
    target.kill();
    await api?.stop();
    await database.close();
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

interface Run {
  count: number;
  seconds: number;
  port: number;
}

const OBSERVERS = `insert into observers (id, project_id, name, type, uptime, interval_seconds, failure_threshold,
    recovery_threshold, status, data_at, created_at, updated_at)
  select 'obs_' || lpad(n::text, 26, '0'), (select id from projects limit 1), 'Bench ' || n, 'uptime', $2, $3, 3, 1,
    'pending', now(), now(), now()
  from generate_series(1, $1) n`;
const CHECKS = `insert into observer_checks (observer_id, region, check_at)
  select id, 'local', now() + random() * $1 * interval '1 second' from observers`;
const RESULTS = `select observer_id, (extract(epoch from checked_at) * 1000)::float8 as at, status from check_results
  where checked_at > to_timestamp($1 / 1000.0)`;

async function measure(client: pg.Client, api: Server, { count, seconds, port }: Run): Promise<void> {
  const uptime = {
    ...{ check: 'http', target: `http://127.0.0.1:${port}/`, method: 'GET', headers: [], expected_status_codes: [] },
    ...{ expected_body: null, follow_redirects: true, verify_tls: true, timeout_seconds: 10, regions: [] },
  };
  await client.query(OBSERVERS, [count, JSON.stringify(uptime), INTERVAL_SECONDS]);
  await client.query(CHECKS, [INTERVAL_SECONDS]);
  await sleep(SETTLE_MS);
  const [begin, cpu] = [Date.now(), cpuSeconds(api.pid)];
  await sleep(seconds * 1000);
  const used = cpuSeconds(api.pid) - cpu;
  const { rows } = await client.query<{ observer_id: string; at: number; status: string }>(RESULTS, [begin]);
  const lags = rows.map(({ observer_id, at }) => lagOf(observer_id, at)).sort((a, b) => a - b);
  const at = (part: number): string => `${Math.round(lags[Math.floor(part * (lags.length - 1))] ?? NaN)} ms`;
  const failed = rows.filter(({ status }) => status !== 'pass').length;
  const rate = (rows.length / seconds).toFixed(0);
  printLine(`${rows.length} checks (${rate}/s, expected ${count / INTERVAL_SECONDS}/s), ${failed} failed`);
  printLine(`lag p50 ${at(0.5)}, p95 ${at(0.95)}, p99 ${at(0.99)}, max ${at(1)}`);
  printLine(`the worker took ${((used / seconds) * 100).toFixed(0)} % of a core`);
}

/** How long after its beat a check began. */
function lagOf(observerId: string, at: number): number {
  // All beats of an observer have the same phase.
  const phase = nextObserverCheckMs(observerId, 'local', INTERVAL_MS, at) % INTERVAL_MS;
  return (at - phase + INTERVAL_MS) % INTERVAL_MS;
}

const TICKS_PER_SECOND = 100;

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function serveTarget(): void {
  const server = createServer((_, response) => response.end('ok'));
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
  process.once('disconnect', () => process.exit());
}

if (process.argv[2] === 'target') serveTarget();
else void main();
