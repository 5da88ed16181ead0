// Many zones in one process: memory, start, and what a change costs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { NameserverDriver } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../../engines/dns/driver';
import { printLine } from '../run';
import { answers, embeddedOptions, freePort, idOf, zone } from './servers';

const RECORDS_EACH = 20;
const CHANGES = 51;
const FEW = 10;

/** Resident memory in MB of this process and of the child that it has started last. */
function memory(): { driver: number; answering: number } {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
  const rss = (pid: string): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  return { driver: Math.round(rss('self')), answering: Math.round(rss(children.at(-1) as string)) };
}

async function open(directory: string, port: number): Promise<EmbeddedNameserver> {
  const processes = { count: 1, resolvers: [], ended: () => {} };
  return openEmbeddedNameserver({ ...embeddedOptions(directory, port), processes });
}

/** Milliseconds of a change of each server: medians, in turns, since other work on the machine comes and goes. */
async function changes(servers: readonly NameserverDriver[]): Promise<number[]> {
  const times = servers.map(() => [] as number[]);
  for (let turn = 0; turn < CHANGES; turn += 1)
    for (const [index, server] of servers.entries()) {
      const spec = { ...zone(3, RECORDS_EACH), serial: 2 + turn };
      const begin = performance.now();
      await server.ensure({ id: idOf(spec), spec }, { state: 'absent' }, driverContext(60_000));
      times[index]?.push(performance.now() - begin);
    }
  return times.map((each) => each.sort((a, b) => a - b)[Math.floor(CHANGES / 2)] as number);
}

export async function measureSize(directory: string, count: number): Promise<void> {
  const few = await startWith(path.join(directory, 'few'), FEW);
  try {
    const all = await startWith(path.join(directory, 'all'), count);
    try {
      const { driver, answering } = all.memory;
      printLine(`${count} zones of ${RECORDS_EACH} records, read from the disk in ${all.start.toFixed(1)} s`);
      printLine(`memory: ${answering} MB of the process that answers, ${driver} MB of the one that changes`);
      const [ofFew, ofAll] = (await changes([few.server, all.server])).map((ms) => ms.toFixed(1));
      printLine(`a change, on disk and answered: ${ofFew} ms with ${FEW} zones, ${ofAll} with all`);
    } finally {
      await all.server.close();
    }
  } finally {
    await few.server.close();
  }
}

async function startWith(directory: string, count: number) {
  mkdirSync(directory, { recursive: true });
  for (let number = 0; number < count; number += 1) {
    const spec = zone(number, RECORDS_EACH);
    writeFileSync(path.join(directory, `${idOf(spec)}.json`), JSON.stringify({ ...spec, keys: null }));
  }
  // Pending writes would be charged to the start and the first change.
  execFileSync('sync');
  const begin = performance.now();
  const port = await freePort();
  const server = await open(directory, port);
  try {
    await answers(port, `host0.zone${count - 1}.example.com`);
    return { server, start: (performance.now() - begin) / 1000, memory: memory() };
  } catch (error) {
    await server.close();
    throw error;
  }
}
