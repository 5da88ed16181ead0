// The user of the operating system that PostgreSQL runs as (docs/decisions/rules.md §5).
import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { StartupError } from '../../../core/startup_error';

export interface EngineUser {
  name: string;
  /** Numeric user of the server and of its data. */
  uid: number;
  /** Options for child_process: the user to change to, a folder that everyone may enter, and no setting of ours. */
  spawn: { cwd: string; env: NodeJS.ProcessEnv; uid?: number; gid?: number };
}

/**
 * As root: the named user, because PostgreSQL refuses uid 0. Otherwise the user of this process.
 * Throws StartupError when the named user does not exist or is root.
 */
export function engineUser(name: string): EngineUser {
  const uid = process.getuid?.() ?? 0;
  if (uid !== 0) return { name: `uid ${uid}`, uid, spawn: { cwd: '/', env: environment() } };
  const named = idOf(name, '-u');
  if (named === 0) throw new StartupError('PLATFORM_POSTGRES_USER must not be root: PostgreSQL refuses to run as root');
  // `| 0`: macOS prints the id of its user nobody (-2) unsigned, and spawn takes a signed number.
  return { name, uid: named, spawn: { cwd: '/', env: environment(), uid: named | 0, gid: idOf(name, '-g') | 0 } };
}

/** Whether the engine may enter this folder: each folder above must let it through. */
export function reaches(engine: EngineUser, directory: string): boolean {
  if (engine.spawn.uid === undefined) return true;
  return spawnSync('/bin/sh', ['-c', 'cd -- "$1"', 'sh', directory], engine.spawn).status === 0;
}

export function changeOwner(engine: EngineUser, file: string): void {
  if (engine.spawn.uid !== undefined) fs.chownSync(file, engine.uid, -1);
}

function idOf(name: string, flag: '-u' | '-g'): number {
  try {
    return Number(execFileSync('id', [flag, '--', name], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
  } catch {
    throw new StartupError(`PLATFORM_POSTGRES_USER: this machine has no user ${name}, as which PostgreSQL could run`);
  }
}

/** Settings of the platform hold secrets, and a process of another user has no business with them. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, LD_LIBRARY_PATH } = process.env;
  return { PATH, LC_ALL: 'C', ...(LD_LIBRARY_PATH ? { LD_LIBRARY_PATH } : {}) };
}
