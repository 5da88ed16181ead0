// npm run bench:databases: time to create a database, speed of backups and restores compared with the bare programs of
// its engine, and the cost of idle databases.
//   npm run bench:databases -- [--rounds=5] [--megabytes=256] [--idle=50] [--engines=postgresql,redis,mariadb]
//   NETWORK=isolated npm run bench:databases -- --megabytes=0 --idle=0
//   npm run bench:databases -- --rounds=0 --megabytes=0 --idle=0 --queries=2    # on shared and on isolated networks
// The service runs as in production with `npm start`, with its embedded database; all requests use the API.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Stage } from '../../demo/stage';
import { processesWith } from '../../demo/traces';
import { hostFacts } from '../../../drivers/host';
import { backupTable } from './databases_backups';
import { idleDatabases } from './databases_idle';
import { queryTable } from './databases_queries';
import { memoryOf, openDatabases, sizeOf, type EngineName } from './databases_server';
import { printLine, runBench } from '../run';

const POLL_MS = 20;
const REST_MS = 5_000;
const GIVE_UP_MS = 300_000;

interface Options {
  rounds: number;
  megabytes: number;
  idle: number;
  /** Seconds of each load; 0: none. */
  queries: number;
  engines: EngineName[];
}

async function main(): Promise<void> {
  const options = await optionsGiven();
  printLine(
    `Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ` +
      `${os.loadavg()[0]?.toFixed(1)}`,
  );
  const facts = await hostFacts();
  printLine(`${options.engines.map((engine) => `${engine} ${facts[engine][0]?.version}`).join(', ')}\n`);
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]).then(() =>
    Promise.reject(new Error('interrupted')),
  );
  if (options.queries > 0)
    await onStages(['shared', 'isolated'], stopped, (stages) => queryTable(stages, options, printLine));
  if (options.rounds + options.megabytes + options.idle > 0)
    await onStages([process.env.NETWORK ?? 'shared'], stopped, ([stage]) => measure(stage!, options));
}

/** Services, one for each network, until the work is done or `stopped` rejects. */
async function onStages(
  networks: string[],
  stopped: Promise<never>,
  work: (stages: Stage[]) => Promise<void>,
): Promise<void> {
  const stages: Stage[] = [];
  try {
    for (const [index, network] of networks.entries()) stages.push(await openDatabases(network, 29_000 + index * 200));
    await Promise.race([work(stages), stopped]);
  } finally {
    for (const stage of stages) await removeAll(stage).finally(() => stage.close());
  }
}

async function optionsGiven(): Promise<Options> {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '5' },
      megabytes: { type: 'string', default: '256' },
      idle: { type: 'string', default: '50' },
      queries: { type: 'string', default: '0' },
      engines: { type: 'string', default: 'postgresql,redis,mariadb' },
    },
  });
  const facts = await hostFacts();
  const engines = (values.engines.split(',') as EngineName[]).filter((engine) => facts[engine].length > 0);
  return {
    rounds: Number(values.rounds),
    megabytes: Number(values.megabytes),
    idle: Number(values.idle),
    queries: Number(values.queries),
    engines,
  };
}

async function measure(stage: Stage, { rounds, megabytes, idle, engines }: Options): Promise<void> {
  if (rounds > 0) {
    printLine(
      '| From POST to `available` | s, median | least | most | memory of the idle server, MiB | its disk, MiB |\n' +
        '|---|--:|--:|--:|--:|--:|',
    );
    for (const engine of engines) printLine(await creationRow(stage, engine, rounds));
    printLine('');
  }
  if (megabytes > 0) await backupTable(stage, engines, megabytes, printLine);
  if (idle > 0) await idleDatabases(stage, engines, idle, printLine);
}

/** With the smallest package. Memory of all processes, shared pages counted once. */
async function creationRow(stage: Stage, engine: EngineName, rounds: number): Promise<string> {
  const times: number[] = [];
  let [memory, disk] = [0, 0];
  for (let round = 1; round <= rounds; round += 1) {
    const begin = performance.now();
    const { id } = await stage.api.call('POST', '/v2/databases', {
      name: `${engine}-${round}`,
      engine,
      backup_schedule: { enabled: engine === 'postgresql' },
    });
    await untilAvailable(stage, id, POLL_MS);
    times.push((performance.now() - begin) / 1000);
    if (round === rounds) {
      await sleep(REST_MS);
      [memory, disk] = [memoryOf(id), sizeOf(path.join(stage.directory, 'databases', id))];
    }
    await stage.api.call('DELETE', `/v2/databases/${id}`);
    await untilGone(stage, id);
  }
  times.sort((a, b) => a - b);
  const [median = NaN, least = NaN, most = NaN] = [times[Math.floor(times.length / 2)], times[0], times.at(-1)];
  return (
    `| ${engine}, median of ${rounds} | ${median.toFixed(2)} | ${least.toFixed(2)} | ${most.toFixed(2)} | ` +
    `${memory.toFixed(1)} | ${disk.toFixed(0)} |`
  );
}

async function untilAvailable({ api }: Stage, id: string, lookMs: number): Promise<void> {
  for (const end = Date.now() + GIVE_UP_MS; Date.now() < end; await sleep(lookMs)) {
    const { status, status_reason } = await api.call('GET', `/v2/databases/${id}`);
    if (status === 'available') return;
    if (status === 'failed') throw new Error(String(status_reason));
  }
  throw new Error(`${id} is not available within ${GIVE_UP_MS} ms`);
}

async function untilGone({ directory }: Stage, id: string): Promise<void> {
  const place = path.join(directory, 'databases', id);
  for (const end = Date.now() + GIVE_UP_MS; Date.now() < end && (existsSync(place) || processesWith(id).length);)
    await sleep(POLL_MS * 5);
}

/** Servers outlive the service: they go before it does. */
async function removeAll({ api, directory }: Stage): Promise<void> {
  for (;;) {
    const { data } = await api.call<{ data: { id: string }[] }>('GET', '/v2/databases?limit=100');
    if (!data.length) break;
    for (const { id } of data) await api.call('DELETE', `/v2/databases/${id}`);
  }
  for (
    const end = Date.now() + GIVE_UP_MS;
    Date.now() < end && processesWith(path.join(directory, 'databases')).length;
  )
    await sleep(500);
}

runBench(main);
