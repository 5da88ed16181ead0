// A PostgreSQL server that nobody of us set up, for what tenants take away.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { fastDirectory } from './database';

interface StockServer {
  /** Arguments of its clients. */
  connection: string[];
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

/** @param bin directory of its programs */
export function startStockServer(bin: string): StockServer {
  const place = mkdtempSync(path.join(fastDirectory(), 'stock-'));
  chmodSync(place, 0o755);
  if (isRoot) chownSync(place, NOBODY, NOBODY);
  const as = isRoot ? ['setpriv', '--reuid', `${NOBODY}`, '--regid', `${NOBODY}`, '--clear-groups'] : ['env'];
  const run = (name: string, ...args: string[]) => program(as[0]!, [...as.slice(1), path.join(bin, name), ...args]);
  const data = path.join(place, 'data');
  run('initdb', '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync');
  const options = `-k ${place} -c listen_addresses='' -c fsync=off`;
  run('pg_ctl', '-D', data, '-w', '-l', path.join(place, 'log'), '-o', options, 'start');
  return {
    connection: ['-h', place, '-U', 'postgres'],
    stop: () => {
      run('pg_ctl', '-D', data, '-m', 'immediate', 'stop');
      rmSync(place, { recursive: true, force: true });
    },
  };
}
