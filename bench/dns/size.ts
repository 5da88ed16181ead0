// Many zones in one process: memory, start, and what a change costs.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { driverContext } from '../../drivers/driver';
import type { NameserverDriver } from '../../drivers/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../drivers/nameserver/embedded/driver';
import { printLine } from '../run';
import { answers, embeddedOptions, freePort, idOf, zone } from './servers';

const RECORDS_EACH = 20;
const CHANGES = 51;

/** Resident memory in MB of this process and of its children. */
function memory(): { driver: number; answering: number } {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const rss = (pid: string): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  return { driver: Math.round(rss('self')), answering: Math.round(children.reduce((sum, pid) => sum + rss(pid), 0)) };
}

async function open(directory: string, port: number): Promise<EmbeddedNameserver> {
  const processes = { count: 1, resolvers: [], ended: () => {} };
  return openEmbeddedNameserver({ ...embeddedOptions(directory, port), processes });
}

/** Milliseconds of a change: the median. */
async function change(server: NameserverDriver): Promise<number> {
  const times: number[] = [];
  for (let turn = 0; turn < CHANGES; turn += 1) {
    const spec = { ...zone(3, RECORDS_EACH), serial: 2 + turn };
    const begin = performance.now();
    await server.ensure({ id: idOf(spec), spec }, { state: 'absent' }, driverContext(60_000));
    times.push(performance.now() - begin);
  }
  return times.sort((a, b) => a - b)[Math.floor(CHANGES / 2)] as number;
}

export async function measureSize(directory: string, count: number): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const few = await withZones(directory, port, 0, 10);
  const all = await withZones(directory, port, 10, count);
  const { driver, answering } = all.memory;
  printLine(`${count} zones of ${RECORDS_EACH} records, read from the disk in ${all.start.toFixed(1)} s`);
  printLine(`memory: ${answering} MB of the process that answers, ${driver} MB of the one that changes`);
  printLine(
    `a change, on disk and answered: ${few.change.toFixed(1)} ms with 10 zones, ${all.change.toFixed(1)} with all`,
  );
}

async function withZones(directory: string, port: number, from: number, to: number) {
  for (let number = from; number < to; number += 1) {
    const spec = zone(number, RECORDS_EACH);
    writeFileSync(path.join(directory, `${idOf(spec)}.json`), JSON.stringify({ ...spec, keys: null }));
  }
  // What is still to be written would be charged to the first change.
  execFileSync('sync');
  const begin = performance.now();
  const server = await open(directory, port);
  try {
    await answers(port, `host0.zone${to - 1}.example.com`);
    const start = (performance.now() - begin) / 1000;
    return { start, memory: memory(), change: await change(server) };
  } finally {
    await server.close();
  }
}
