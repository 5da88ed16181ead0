// Many concurrent requests for one uncached object: requests to the origin, memory, time. And bodies of many gigabytes
// in transit: memory.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printLine } from '../run';
import { startPart, type Part } from './parts';
import { ZONE_HOST } from './roles';
import { countBytes } from './visitors';

const PROCESSES = 4;
/** Connections that one process of visitors may have: a process has 20,000 descriptors, and the host needs some. */
const CONNECTIONS_MAX = 15_000;
const BODY_BYTES = 10_000;
const POLL_MS = 100;
const MB = 1e6;

export async function measureCrowd(directory: string, waiters: number): Promise<void> {
  const app = await startPart('app', {});
  const host = await startPart('host', hostOptions(directory, app, 100 * MB));
  const requests = Math.ceil(waiters / CONNECTIONS_MAX);
  const connections = Math.floor(waiters / PROCESSES / requests);
  const all = connections * requests * PROCESSES;
  const idle = await host.usage();
  const started = performance.now();
  const each = { port: host.port, host: ZONE_HOST, target: `/held/${BODY_BYTES}`, connections, requests };
  const visitors = await Promise.all(
    Array.from({ length: PROCESSES }, (_, index) => startPart('visitors', { ...each, from: 2 + index * 10 })),
  );
  const ended = visitors.map((one) => one.next('answers'));
  while ((await host.usage()).requests < all) await sleep(POLL_MS);
  const waiting = await host.usage();
  const arrived = performance.now();
  app.send({ release: true });
  const counts = await Promise.all(ended);
  const done = performance.now();
  const sum = (name: string): number => counts.reduce((total, one) => total + (one[name] ?? 0), 0);
  const { peak } = await host.usage();
  const origin = (await app.usage()).requests;
  printLine(
    `\n${all} visitors wait for one object of ${BODY_BYTES / 1000} KB (${connections * PROCESSES} connections with ` +
      `${requests} requests each): ${origin} request to the origin, ${sum('answers')} whole answers, ` +
      `${sum('failed')} failed.\nThey came within ${seconds(started, arrived)} s and were answered within ` +
      `${seconds(arrived, done)} s of the origin. Memory of the host: idle ${mb(idle.rss)} MB, while they wait ` +
      `${mb(waiting.rss)} MB, at most ${mb(peak)} MB.`,
  );
  for (const part of [...visitors, host, app]) await part.stop();
}

export async function measureStreams(directory: string, gigabytes: number): Promise<void> {
  const app = await startPart('app', {});
  const host = await startPart('host', hostOptions(directory, app, 100 * MB));
  const idle = await host.usage();
  for (const [kind, text] of [
    ['stream', 'of a known length'],
    ['chunks', 'of an unknown length'],
  ] as const) {
    const started = performance.now();
    const bytes = await countBytes(host.port, ZONE_HOST, `/${kind}/${gigabytes * 1e9}`);
    const { peak } = await host.usage();
    printLine(
      `\n${gigabytes} GB ${text}: ${bytes >= gigabytes * 1e9 ? 'whole' : `BROKEN OFF after ${bytes}`} in ` +
        `${seconds(started, performance.now())} s. Memory of the host: idle ${mb(idle.rss)} MB, at most ` +
        `${mb(peak)} MB.`,
    );
  }
  for (const part of [host, app]) await part.stop();
}

function hostOptions(directory: string, app: Part, objectBytesMax: number): object {
  return { directory: path.join(directory, 'crowd'), originPort: app.port, objectBytesMax };
}

function seconds(from: number, to: number): string {
  return ((to - from) / 1000).toFixed(1);
}

function mb(bytes: number): string {
  return (bytes / MB).toFixed(0);
}
