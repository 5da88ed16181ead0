// What a running server is brought to without a restart: users, role, room on its disk.
import type { ServerSpec } from '../../database';
import { readNote, usedBytes, writeNote, type Estate, type Home } from '../home';
import { createHash } from 'node:crypto';
import { accountsOf, followerOf } from './acl';
import { dataMemoryBytes } from './config';
import { fieldsOf, type Say } from './connection';

export interface Live {
  /** In words for the operator; null = as wanted. */
  differs: string | null;
  storageUsedBytes: number;
  full: boolean;
  lagSeconds: number | null;
}

interface UsersNote {
  wanted: string;
  found: string;
}
/** Size of the data in memory when their file was last written anew. */
interface RewriteNote {
  bytes: number;
}

// Growth is refused: commands that take memory, by the server itself. Reads and deletions go on.
const nothingMore = '1';
// Below this part of the limit a full server takes writes again.
const roomAgain = 0.9;
const tidyFrom = 0.5;

/** Looks only. */
export async function look(estate: Estate, home: Home, spec: ServerSpec, say: Say): Promise<Live> {
  const used = await usedBytes(home.data);
  const closed = await isClosed(say);
  const role = fieldsOf(await say('INFO', 'replication'));
  const differs = [
    (await usersDiffer(home, spec, say)) ? 'users' : null,
    (await roleDiffers(spec, role, say)) ? 'role' : null,
    closed === mustClose(estate, spec, used, closed) ? null : 'storage limit',
  ].filter((one) => one !== null);
  return {
    differs: differs.length === 0 ? null : differs.join(', '),
    storageUsedBytes: used,
    full: closed,
    lagSeconds: lagOf(role),
  };
}

export async function bringUsers(home: Home, spec: ServerSpec, say: Say): Promise<void> {
  if (!(await usersDiffer(home, spec, say))) return;
  const wanted = accountsOf(spec);
  const present = await hashesOf(say);
  for (const { username, rules } of wanted) {
    await say('ACL', 'SETUSER', username, 'reset', ...rules);
    // To change a password ends what was opened with the old one.
    const password = rules.find((rule) => rule.startsWith('#'))?.slice(1);
    if (present.has(username) && present.get(username) !== password)
      await say('CLIENT', 'KILL', 'USER', username, 'SKIPME', 'yes');
  }
  const others = [...present.keys()].filter(
    (username) => username !== 'default' && !wanted.some((one) => one.username === username),
  );
  if (others.length > 0) await say('ACL', 'DELUSER', ...others);
  await writeNote(home, 'users', { wanted: wishOf(spec), found: await foundUsers(say) } satisfies UsersNote);
}

/** Follows its primary, or nobody. */
export async function bringRole(spec: ServerSpec, say: Say): Promise<void> {
  const role = fieldsOf(await say('INFO', 'replication'));
  if (!(await roleDiffers(spec, role, say))) return;
  if (spec.replica_of === null) return void (await say('REPLICAOF', 'NO', 'ONE'));
  await say('CONFIG', 'SET', 'masteruser', followerOf(spec.replica_of.server_id));
  await say('CONFIG', 'SET', 'masterauth', spec.replica_of.password);
  await say('REPLICAOF', '127.0.0.1', String(spec.replica_of.port));
}

/** Closes a server that is over its storage, opens it again, and rewrites its file before it comes to that. */
export async function bringRoom(estate: Estate, home: Home, spec: ServerSpec, say: Say): Promise<void> {
  const used = await usedBytes(home.data);
  const closed = await isClosed(say);
  const close = mustClose(estate, spec, used, closed);
  if (close !== closed) await say('CONFIG', 'SET', 'maxmemory', close ? nothingMore : String(dataMemoryBytes(spec)));
  if (used > limitOf(estate, spec) * tidyFrom) await tidy(home, close, say);
}

/** The position of a replica behind its primary, null for a primary. */
export function lagOf(role: Map<string, string>): number | null {
  if (role.get('role') !== 'slave') return null;
  const since =
    role.get('master_link_status') === 'up'
      ? role.get('master_last_io_seconds_ago')
      : role.get('master_link_down_since_seconds');
  const seconds = Number(since);
  // The primary speaks once a second; -1: it has not been reached yet.
  return Number.isNaN(seconds) || seconds < 0 ? null : Math.max(0, seconds - 1);
}

/** What was deleted leaves the file when that is written anew; a closed server grows by nothing that would make Redis do so itself. */
async function tidy(home: Home, closed: boolean, say: Say): Promise<void> {
  const state = fieldsOf(await say('INFO', 'persistence'));
  if (state.get('aof_rewrite_in_progress') !== '0') return;
  const grown = Number(state.get('aof_current_size')) > 1.2 * Number(state.get('aof_base_size')) + (1 << 16);
  const bytes = Number(fieldsOf(await say('INFO', 'memory')).get('used_memory_dataset'));
  const before = (await readNote<RewriteNote>(home, 'rewrite'))?.bytes ?? Infinity;
  const smaller = bytes < before * roomAgain || state.get('aof_last_bgrewrite_status') === 'err';
  if (!grown && !(closed && smaller)) return;
  await say('BGREWRITEAOF');
  await writeNote(home, 'rewrite', { bytes } satisfies RewriteNote);
}

async function isClosed(say: Say): Promise<boolean> {
  const [, value] = (await say('CONFIG', 'GET', 'maxmemory')) as string[];
  return value === nothingMore;
}

function mustClose(estate: Estate, spec: ServerSpec, used: number, closed: boolean): boolean {
  return used > limitOf(estate, spec) * (closed ? roomAgain : 1);
}

function limitOf(estate: Estate, { storage_gb }: ServerSpec): number {
  return storage_gb * estate.gigabyteBytes;
}

async function roleDiffers(spec: ServerSpec, role: Map<string, string>, say: Say): Promise<boolean> {
  if (spec.replica_of === null) return role.get('role') !== 'master';
  const [, password] = (await say('CONFIG', 'GET', 'masterauth')) as string[];
  return (
    role.get('role') !== 'slave' ||
    role.get('master_port') !== String(spec.replica_of.port) ||
    password !== spec.replica_of.password
  );
}

// Rules are written differently by each version of the server; so what it made of them is remembered.
async function usersDiffer(home: Home, spec: ServerSpec, say: Say): Promise<boolean> {
  const note = await readNote<UsersNote>(home, 'users');
  return note?.wanted !== wishOf(spec) || note.found !== (await foundUsers(say));
}

function wishOf(spec: ServerSpec): string {
  return digest(JSON.stringify(accountsOf(spec)));
}

async function foundUsers(say: Say): Promise<string> {
  return digest(((await say('ACL', 'LIST')) as string[]).sort().join('\n'));
}

async function hashesOf(say: Say): Promise<Map<string, string>> {
  const lines = (await say('ACL', 'LIST')) as string[];
  return new Map(lines.map((line) => [line.split(' ')[1] ?? '', /#([0-9a-f]{64})/.exec(line)?.[1] ?? '']));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
