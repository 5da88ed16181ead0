// A real PowerDNS on loopback with its HTTP API, on SQLite.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../processes/free_port';
import type { Answer } from '../service';

const PROGRAM = '/usr/sbin/pdns_server';
const SCHEMA = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql';
const KEY = 'a-key-of-tests';

export interface Powerdns {
  url: string;
  key: string;
  /** Of its answers, on 127.0.0.1. */
  port: number;
  /** A call of its API, as somebody else would make it. */
  call(method: string, path: string, body?: unknown): Promise<Answer['body']>;
  start(): Promise<void>;
  stop(): Promise<void>;
  close(): Promise<void>;
}

export async function startPowerdns(more: string[] = []): Promise<Powerdns> {
  const directory = mkdtempSync(path.join(tmpdir(), 'powerdns-'));
  const database = path.join(directory, 'pdns.sqlite3');
  execFileSync('sqlite3', [database, `.read ${SCHEMA}`]);
  const [port, apiPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${apiPort}`;
  mkdirSync(path.join(directory, 'run'));
  const lines = [
    ...['launch=gsqlite3', `gsqlite3-database=${database}`, 'gsqlite3-dnssec=yes', 'local-address=127.0.0.1'],
    ...[`local-port=${port}`, 'api=yes', `api-key=${KEY}`, 'webserver=yes', 'webserver-address=127.0.0.1'],
    ...[`webserver-port=${apiPort}`, 'webserver-allow-from=127.0.0.0/8', 'zone-cache-refresh-interval=0'],
    ...['daemon=no', 'guardian=no', `socket-dir=${path.join(directory, 'run')}`, 'security-poll-suffix='],
    ...more,
  ];
  writeFileSync(path.join(directory, 'pdns.conf'), `${lines.join('\n')}\n`);
  let child: ChildProcess | null = null;
  const self: Powerdns = {
    ...{ url, key: KEY, port },
    async call(method, where, body) {
      const response = await fetch(`${url}/api/v1/servers/localhost${where}`, {
        method,
        headers: { 'X-API-Key': KEY, 'Content-Type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${where}: ${response.status} ${text}`);
      return text ? JSON.parse(text) : null;
    },
    async start() {
      child = spawn(PROGRAM, [`--config-dir=${directory}`], { stdio: 'ignore' });
      for (let turn = 0; turn < 100; turn += 1) {
        if (await self.call('GET', '').catch(() => null)) return;
        await sleep(50);
      }
      throw new Error('PowerDNS does not answer');
    },
    async stop() {
      const running = child;
      child = null;
      if (!running || running.exitCode !== null) return;
      const ended = new Promise((resolve) => running.once('exit', resolve));
      running.kill('SIGKILL');
      await ended;
    },
    async close() {
      await self.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
  await self.start();
  return self;
}
