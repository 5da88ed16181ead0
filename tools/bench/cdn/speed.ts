// Hits of 1 KB beside the ingress before a bare application, hits of 1 MB beside a bare server of files, and Varnish.
import { spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printLine } from '../run';
import { startPart, type Part } from './parts';
import { APP_HOST, LARGE_BYTES, ZONE_HOST } from './roles';
import { visitFor, type Visits } from './visitors';
import { freePort } from '../../../test/support/processes/free_port';

const VARNISHD = '/usr/sbin/varnishd';
const CONNECTIONS = 32;
const OBJECT_BYTES = 100e6;
const UP_WITHIN_MS = 30_000;

interface Side {
  name: string;
  part: Part;
  host: string;
  target: string;
}

interface Measured extends Visits {
  cpuMicroseconds: number;
}

export async function compareSpeed(directory: string, rounds: number, milliseconds: number): Promise<void> {
  const file = path.join(directory, 'large');
  writeFileSync(file, Buffer.alloc(LARGE_BYTES, 'x'));
  const app = await startPart('app', {});
  const parts = [app, await startPart('files', { file }), await startPart('host', optionsOf(directory, app))];
  const [, files, host] = parts as [Part, Part, Part];
  const varnish = existsSync(VARNISHD) ? await startVarnish(directory) : null;
  if (varnish) parts.push(await startPart('host', { ...optionsOf(directory, app), varnish }));
  const [, , , front] = parts;
  const behind = (target: string): Side[] => [
    { name: 'a hit', part: host, host: ZONE_HOST, target },
    ...(front ? [{ name: 'a hit of Varnish behind the ingress', part: front, host: ZONE_HOST, target }] : []),
  ];
  printLine(`\n${CONNECTIONS} connections, ${rounds} rounds of ${milliseconds} ms in turn, the best of each\n`);
  printLine('| Answers | rps | MB/s | CPU, µs | ratio |');
  printLine('|---|--:|--:|--:|--:|');
  const direct = { part: app, host: APP_HOST, target: '/small' };
  try {
    await compare(
      '1 KB',
      [
        { name: 'the ingress before a bare application', part: host, host: APP_HOST, target: '/small' },
        ...behind('/small'),
        { name: 'the bare application', ...direct },
      ],
      { rounds, milliseconds },
    );
    await compare(
      '1 MB',
      [{ name: 'a bare server of files', part: files, host: APP_HOST, target: '/large' }, ...behind('/large')],
      { rounds, milliseconds },
    );
  } finally {
    for (const part of parts.reverse()) await part.stop();
    varnish?.stop();
  }
}

function optionsOf(directory: string, app: Part): object {
  return { directory: path.join(directory, 'objects'), originPort: app.port, objectBytesMax: OBJECT_BYTES };
}

/** In turn, so that a disturbance meets all; the first side is what the others are compared with. */
async function compare(size: string, sides: Side[], plan: { rounds: number; milliseconds: number }): Promise<void> {
  const best = new Map<string, Measured>();
  for (let round = 0; round <= plan.rounds; round += 1)
    for (const side of sides) {
      const measured = await measure(side, plan.milliseconds);
      const known = best.get(side.name);
      if (round > 0 && measured.rps > (known?.rps ?? 0)) best.set(side.name, measured);
    }
  const base = best.get((sides[0] as Side).name) as Measured;
  for (const [name, { rps, megabytesPerSecond, cpuMicroseconds }] of best) {
    const figures = [rps.toFixed(0), megabytesPerSecond.toFixed(0), cpuMicroseconds.toFixed(0)];
    printLine(`| ${[`${size}: ${name}`, ...figures, (rps / base.rps).toFixed(2)].join(' | ')} |`);
  }
}

async function measure({ part, host, target }: Side, milliseconds: number): Promise<Measured> {
  const before = (await part.usage()).cpuSeconds;
  const visits = await visitFor({ port: part.port, host, target, connections: CONNECTIONS, milliseconds });
  const used = (await part.usage()).cpuSeconds - before;
  return { ...visits, cpuMicroseconds: (used / (visits.rps * (milliseconds / 1000))) * 1e6 };
}

interface RunningVarnish {
  port: number;
  cliPort: number;
  gatewayPort: number;
  secretFile: string;
  stop(): void;
}

async function startVarnish(directory: string): Promise<RunningVarnish> {
  const secretFile = path.join(directory, 'secret');
  writeFileSync(secretFile, 'secret\n');
  const [port, cliPort, gatewayPort] = [await freePort(), await freePort(), await freePort()];
  const at = ['-a', `127.0.0.1:${port}`, '-T', `127.0.0.1:${cliPort}`, '-S', secretFile];
  const own = ['-F', '-f', '', '-n', path.join(directory, 'varnish'), '-j', 'none', '-s', 'malloc,256m'];
  const child = spawn(VARNISHD, [...own, ...at], { stdio: 'ignore' });
  const stop = (): void => void child.kill();
  process.once('exit', stop);
  for (const end = Date.now() + UP_WITHIN_MS; !(await isOpen(cliPort)); await sleep(50))
    if (Date.now() > end) throw new Error('varnishd does not listen');
  return { port, cliPort, gatewayPort, secretFile, stop };
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (open: boolean): void => (socket.destroy(), resolve(open));
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}
