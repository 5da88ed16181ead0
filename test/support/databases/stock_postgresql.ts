// A PostgreSQL server that nobody of us set up, for what tenants take away.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fastDirectory } from './database';

export interface StockServer {
  /** Arguments of its clients. */
  connection: string[];
  /** Ends it as a power cut does; its data stay. */
  kill(): void;
  /** After `kill`. */
  startAgain(): void;
  stop(): void;
}

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

/** Runs a program to its end. @throws Error with what it printed where it fails */
export function program(command: string, args: string[], env: Record<string, string> = {}): string {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 64 << 20, env: { ...process.env, ...env } });
  if (done.status !== 0) throw new Error(`${path.basename(command)}: ${done.stderr || String(done.error)}`);
  return done.stdout;
}

/**
 * @param bin directory of its programs
 * @param tcp `port`: on the loopback address, too; `settings`: of postgresql.conf, as `name=value`
 */
export function startStockServer(bin: string, tcp?: { port: number; settings: string[] }): StockServer {
  const place = mkdtempSync(path.join(fastDirectory(), 'stock-'));
  chmodSync(place, 0o755);
  if (isRoot) chownSync(place, NOBODY, NOBODY);
  const as = isRoot ? ['setpriv', '--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups'] : ['env'];
  const run = (name: string, ...args: string[]) => program(as[0]!, [...as.slice(1), path.join(bin, name), ...args]);
  const data = path.join(place, 'data');
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync');
  const address = tcp ? `-c listen_addresses=127.0.0.1 -p ${tcp.port}` : `-c listen_addresses=''`;
  const settings = ['fsync=off', ...(tcp?.settings ?? [])].map((one) => `-c ${one}`).join(' ');
  const options = `-k ${place} ${address} ${settings}`;
  const start = () => void run('pg_ctl', '-D', data, '-w', '-l', path.join(place, 'log'), '-o', options, 'start');
  const kill = () => void run('pg_ctl', '-D', data, '-m', 'immediate', 'stop');
  start();
  return {
    connection: ['-h', place, '-U', 'postgres'],
    kill,
    startAgain: start,
    stop: () => {
      kill();
      rmSync(place, { recursive: true, force: true });
    },
  };
}
