// HAProxy before the same application, as a yardstick, where it is installed: a map of hosts, the same headers and time
// limits, one process with one thread.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

interface Haproxy {
  version: string;
  port: number;
  cpuSeconds(): Promise<number>;
  stop(): void;
}

const TRIES = 100;
const TRY_MS = 50;

/** Null where it is not installed. */
export async function startHaproxy(host: string, appPort: number): Promise<Haproxy | null> {
  let version: string;
  try {
    version = /version (\S+)/.exec(execFileSync('haproxy', ['-v'], { encoding: 'utf8' }))?.[1] ?? '';
  } catch {
    return null;
  }
  const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-'));
  const port = await freePort();
  writeFileSync(path.join(directory, 'hosts'), `${host} app\n`);
  writeFileSync(path.join(directory, 'configuration'), configuration(directory, port, appPort));
  const child = spawn('haproxy', ['-db', '-f', path.join(directory, 'configuration')], { stdio: 'ignore' });
  const stop = (): void => (child.kill(), rmSync(directory, { recursive: true, force: true }));
  process.once('exit', stop);
  await accepting(port);
  return { version, port, cpuSeconds: () => Promise.resolve(cpuSecondsOf(child.pid as number)), stop };
}

function configuration(directory: string, port: number, appPort: number): string {
  return `global
  nbthread 1
defaults
  mode http
  timeout client 65s
  timeout connect 5s
  timeout server 30s
  option http-keep-alive
  http-reuse always
frontend visitors
  bind 127.0.0.1:${port}
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Host %[req.hdr(Host)]
  http-request set-header X-Request-Id %[uuid()]
  use_backend %[req.hdr(Host),lower,map(${directory}/hosts)]
backend app
  server one 127.0.0.1:${appPort}
`;
}

/** In ticks of 10 ms, as Linux has it. */
function cpuSecondsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function accepting(port: number): Promise<void> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise((resolve) => {
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
    await sleep(TRY_MS);
  }
  throw new Error('HAProxy does not listen');
}
