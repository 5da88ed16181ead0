// npm run bench: the service beside a bare node http + pg server on the same data, in one run on one machine.
//   npm run bench -- [--quick] [--only=GET] [--profile=<folder>]
// --only measures the cases whose name contains the word; --profile leaves a .cpuprofile of the loaded service there.
// Every answer is compared; a wrong one ends the run with exit code 1. It takes less than three minutes.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { openEmbedded } from '../server/embedded';
import { compared, limited, refusals, streams, type Case } from './cases';
import { load, type Shot } from './load';
import { startApi, startBare, type Server } from './processes';
import { bound, comparison, refusalTable, type Measured, type Result } from './report';
import { seed, type Seed } from './seed';

const CONNECTIONS = 32;
const MIB = 1024 * 1024;
const RSS_TARGET_MIB = 180;
const START_TARGET_SECONDS = 3;
const WINDOW_MS = 60_000;

// The worker would compete with the faces for the rows that POST makes: it is left out.
const OPEN = { LOG_LEVEL: 'info', WORKER: 'separate', RATE_LIMIT_READ: '10000000', RATE_LIMIT_WRITE: '10000000', RATE_LIMIT_FAILED_AUTH: '10000000', QUOTAS: '{"volumes":null,"volume_storage_gb":null}' };

interface Plan {
  size: { projects: number; volumes: number };
  rounds: number;
  milliseconds: number;
  starts: number;
  only: string;
  profile: string | undefined;
}

async function main(): Promise<void> {
  const plan = readPlan();
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-'));
  chmodSync(dataDir, 0o711); // as root, the database runs as another user
  say(`Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ${os.loadavg()[0]?.toFixed(1)}; ${plan.size.projects} projects of ${plan.size.volumes} volumes, ${CONNECTIONS} connections, ${plan.rounds} rounds of ${plan.milliseconds} ms\n`);
  try {
    const data = await firstStart(dataDir, plan);
    const starts = await timeStarts(dataDir, plan.starts);
    await underLoad(dataDir, data, plan);
    say(bound('Start to ready, existing data directory, best', Math.min(...starts.map((start) => start.ms)) / 1000, START_TARGET_SECONDS, 's'));
    say(`Starts: ${starts.map(({ ms }) => `${(ms / 1000).toFixed(2)} s`).join(', ')}; memory when ready, worker included: ${(Math.min(...starts.map((start) => start.rss)) / MIB).toFixed(0)} MiB`);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function readPlan(): Plan {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, only: { type: 'string' }, profile: { type: 'string' } } });
  const usual = { size: { projects: 20, volumes: 5000 }, rounds: 6, milliseconds: 1500, starts: 3 };
  const quick = { size: { projects: 5, volumes: 1000 }, rounds: 2, milliseconds: 500, starts: 1 };
  return { ...(values.quick ? quick : usual), only: values.only ?? '', profile: values.profile };
}

async function firstStart(dataDir: string, plan: Plan): Promise<Seed> {
  const api = await startApi(dataDir, OPEN);
  try {
    return await withDatabase(dataDir, (url) => seed(url, plan.size));
  } finally {
    await api.stop();
  }
}

async function withDatabase<T>(dataDir: string, run: (url: string) => Promise<T>): Promise<T> {
  const database = await openEmbedded({ dataDir });
  try {
    return await run(database.url);
  } finally {
    await database.close();
  }
}

/** With the settings that a new installation has, the embedded database included. */
async function timeStarts(dataDir: string, times: number): Promise<{ ms: number; rss: number }[]> {
  const starts: { ms: number; rss: number }[] = [];
  for (let index = 0; index < times; index += 1) {
    const api = await startApi(dataDir, {});
    const { rss } = await api.usage();
    starts.push({ ms: api.startMs, rss });
    await api.stop();
  }
  return starts;
}

async function underLoad(dataDir: string, data: Seed, plan: Plan): Promise<void> {
  const api = await startApi(dataDir, OPEN, plan.profile ? ['--cpu-prof', `--cpu-prof-dir=${plan.profile}`] : []);
  try {
    const cases = compared(data).filter(({ name }) => name.includes(plan.only));
    const results = await withDatabase(dataDir, (url) => beside(url, api, data, cases, plan));
    say(comparison(results));
    const read = results[0];
    const refused = refusals(data).filter(({ name }) => name.includes(plan.only));
    const refusalResults = plan.only && !refused.length ? [] : await alone(api, refused, plan);
    say('');
    say(bound('Resident memory after load', (await api.usage()).rss / MIB, RSS_TARGET_MIB, 'MiB'));
    await api.stop();
    if (!plan.only) refusalResults.push(await usedUp(dataDir, data, plan));
    if (read && refusalResults.length) say(`\n${refusalTable(refusalResults, read)}\n`);
  } finally {
    await api.stop();
  }
}

/** Each case in turn on both servers, round after round, so that a disturbance meets all of them. */
async function beside(url: string, api: Server, data: Seed, cases: Case[], plan: Plan): Promise<Result[]> {
  const bare = await startBare(url, data.key);
  try {
    const reference = streams(data);
    const results: Result[] = cases.map(({ name, target }) => ({ name, target, ours: [], theirs: [] }));
    for (let round = 0; round <= plan.rounds; round += 1) {
      for (const [index, { next, reference: stream }] of cases.entries()) {
        const theirs = stream ? await measure(bare, reference[stream], plan.milliseconds) : null;
        const ours = await measure(api, next, plan.milliseconds);
        if (!round) continue; // warm-up
        results[index]?.ours.push(ours);
        if (theirs) results[index]?.theirs.push(theirs);
      }
    }
    return results;
  } finally {
    await bare.stop();
  }
}

async function alone(api: Server, cases: Case[], plan: Plan): Promise<Result[]> {
  const results: Result[] = cases.map(({ name }) => ({ name, ours: [], theirs: [] }));
  for (let round = 0; round < Math.min(plan.rounds, 3); round += 1) {
    for (const [index, { next }] of cases.entries()) results[index]?.ours.push(await measure(api, next, plan.milliseconds / 2));
  }
  return results;
}

/** A budget of one call: from the second on, all are refused until the minute ends. */
async function usedUp(dataDir: string, data: Seed, plan: Plan): Promise<Result> {
  const api = await startApi(dataDir, { ...OPEN, RATE_LIMIT_READ: '1' });
  try {
    const needed = plan.milliseconds * 3;
    const left = WINDOW_MS - (Date.now() % WINDOW_MS);
    if (left < needed) await new Promise((resolve) => setTimeout(resolve, left + 50));
    const first = limited(data);
    await load({ port: api.port, connections: 1, milliseconds: 0, next: () => ({ ...first.next(), status: 200, body: null }) });
    const [result] = await alone(api, [first], plan);
    return result as Result;
  } finally {
    await api.stop();
  }
}

async function measure(server: Server, next: () => Shot, milliseconds: number): Promise<Measured> {
  const before = await server.usage();
  const round = await load({ port: server.port, connections: CONNECTIONS, milliseconds, next });
  const after = await server.usage();
  return { ...round, cpu: ((after.cpu - before.cpu) / round.requests) * 1e6 };
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
