// A real Varnish on loopback, managed over its port.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../processes/free_port';

const PROGRAM = '/usr/sbin/varnishd';
const UP_WITHIN_MS = 30_000;
const EVERY_MS = 50;

export interface Varnish {
  host: string;
  port: number;
  cliPort: number;
  secretFile: string;
  /** Of -n. */
  directory: string;
  start(): Promise<void>;
  /** SIGKILL to the manager; its child ends with it. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

export async function startVarnish(): Promise<Varnish> {
  const root = mkdtempSync(path.join(tmpdir(), 'varnish-'));
  const [secretFile, directory] = [path.join(root, 'secret'), path.join(root, 'work')];
  writeFileSync(secretFile, 'a secret of tests\n', { mode: 0o600 });
  const [port, cliPort] = [await freePort(), await freePort()];
  let child: ChildProcess | null = null;
  const self: Varnish = {
    ...{ host: '127.0.0.1', port, cliPort, secretFile, directory },
    async start() {
      const own = ['-F', '-f', '', '-n', directory, '-S', secretFile, '-j', 'none'];
      const open = ['-a', `127.0.0.1:${port}`, '-T', `127.0.0.1:${cliPort}`, '-s', 'malloc,64m'];
      const small = ['thread_pools=1', 'thread_pool_min=20', 'vsl_space=1M'].flatMap((one) => ['-p', one]);
      child = spawn(PROGRAM, [...own, ...open, ...small], { stdio: 'ignore' });
      for (const end = Date.now() + UP_WITHIN_MS; !(await isOpen(cliPort)); await sleep(EVERY_MS))
        if (Date.now() > end) throw new Error('varnishd does not listen');
    },
    async kill() {
      const ended = child && new Promise((resolve) => child?.once('exit', resolve));
      child?.kill('SIGKILL');
      await ended;
      child = null;
      // Its worker sees the end of the manager a moment later.
      for (const end = Date.now() + UP_WITHIN_MS; await isOpen(port); await sleep(EVERY_MS))
        if (Date.now() > end) throw new Error('varnishd does not end');
    },
    async close() {
      await self.kill();
      rmSync(root, { recursive: true, force: true });
    },
  };
  await self.start();
  return self;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (open: boolean): void => (socket.destroy(), resolve(open));
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
