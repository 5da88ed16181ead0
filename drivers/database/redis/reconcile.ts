// Reconciles a running server without a restart: users, role and storage limit. What this needs beside the connection
// is the same for a process of this host and for a pod (`ServerStore`).
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { absentIsNull } from '../../../core/files';
import { placeOfData } from '../../hosted_server/server_disk';
import type { DatabaseServer } from '../../database';
import { usedBytes, type EngineContext, type ServerDirectory } from '../../hosted_server/server_directory';
import type { ServerState } from '../proxied';
import { digest, isOverStorage } from '../proxied_server';
import { notesOf, type ServerNotes } from '../server_notes';
import { accountsOf, followerOf } from './acl';
import { dataMemoryBytes, liveSettings } from './config';
import { infoFieldsOf, type SendCommand } from './connection';

/** What the platform keeps about a server, and what it knows of its files. */
export interface ServerStore extends ServerNotes {
  usedBytes(): Promise<number>;
  /** Whether its file has zeros in it, see moveToLargerDisk. */
  hasHole(): Promise<boolean>;
}

/** Of a server of this host. */
export function storeOf(serverDirectory: ServerDirectory): ServerStore {
  return {
    ...notesOf(serverDirectory),
    usedBytes: () => usedBytes(serverDirectory.data),
    hasHole: () => hasHole(serverDirectory),
  };
}

interface UsersNote {
  desired: string;
  observed: string;
  /** For users with two passwords: the first client id since the second password was added. */
  rotations?: Record<string, number>;
}
/** Size of the data in memory at the last rewrite of their file. */
interface RewriteNote {
  bytes: number;
}

// The server rejects commands that take memory. Reads and deletions continue.
const noGrowth = '1';
// At most one ext4 block at the end of a file is not written.
const HOLE_BYTES = 4096;
// From this share of the limit on, the file is rewritten if the data have shrunk to `shrunkShare` of their size.
const rewriteShare = 0.5;
const shrunkShare = 0.9;

/** Read-only. */
export async function inspectServer(
  engine: Pick<EngineContext, 'gigabyteBytes'>,
  store: ServerStore,
  spec: DatabaseServer,
  send: SendCommand,
): Promise<ServerState> {
  const used = await store.usedBytes();
  const closed = await isClosed(send);
  const role = infoFieldsOf(await send('INFO', 'replication'));
  const differs = [
    (await usersDiffer(store, spec, send)) ? 'users' : null,
    (await roleDiffers(spec, role, send)) ? 'role' : null,
    (await liveSettingsDiffer(spec, send)) ? 'settings that need no restart' : null,
    closed === isOverStorage(engine, spec, used, closed) ? null : 'storage limit',
    (await store.hasHole()) ? 'zeros in its file' : null,
  ].filter((one) => one !== null);
  return {
    differs: differs.length === 0 ? null : differs.join(', '),
    storageUsedBytes: used,
    full: closed,
    lagSeconds: lagOf(role),
  };
}

export async function ensureUsers(store: ServerStore, spec: DatabaseServer, send: SendCommand): Promise<void> {
  if (!(await usersDiffer(store, spec, send))) return;
  const wanted = accountsOf(spec);
  const present = await hashesOf(send);
  const before = (await store.readNote<UsersNote>('users'))?.rotations ?? {};
  const rotations: Record<string, number> = {};
  for (const { username, rules } of wanted) {
    await send('ACL', 'SETUSER', username, 'reset', ...rules);
    const hashes = rules.filter((rule) => rule.startsWith('#')).map((rule) => rule.slice(1));
    if (hashes.length > 1) rotations[username] = before[username] ?? Number(await send('CLIENT', 'ID'));
    const known = present.get(username) ?? [];
    // Removing a password ends its sessions.
    if (known.some((hash) => !hashes.includes(hash)))
      await endSessions(send, username, known.includes(hashes[0] ?? '') ? before[username] : undefined);
  }
  const others = [...present.keys()].filter((username) => !wanted.some((one) => one.username === username));
  if (others.length > 0) await send('ACL', 'DELUSER', ...others);
  await store.writeNote('users', {
    desired: desiredDigestOf(spec),
    observed: await foundUsers(send),
    rotations,
  } satisfies UsersNote);
}

/** Settings of a server that was started before they were as they are now. */
export async function ensureLiveSettings(spec: DatabaseServer, send: SendCommand): Promise<void> {
  if (await liveSettingsDiffer(spec, send)) await send('CONFIG', 'SET', ...liveSettings(spec).flat());
}

/** Ensures that the server follows its primary, or is a primary. */
export async function ensureRole(spec: DatabaseServer, send: SendCommand): Promise<void> {
  const role = infoFieldsOf(await send('INFO', 'replication'));
  if (!(await roleDiffers(spec, role, send))) return;
  if (spec.replica_of === null) return void (await send('REPLICAOF', 'NO', 'ONE'));
  await send('CONFIG', 'SET', 'masteruser', followerOf(spec.replica_of.server_id));
  await send('CONFIG', 'SET', 'masterauth', spec.replica_of.password);
  await send('REPLICAOF', '127.0.0.1', String(spec.replica_of.port));
}

/** Closes a server that exceeds its storage, opens it again, and rewrites its file early. */
export async function ensureStorage(
  engine: Pick<EngineContext, 'gigabyteBytes'>,
  store: ServerStore,
  spec: DatabaseServer,
  send: SendCommand,
): Promise<void> {
  const used = await store.usedBytes();
  const closed = await isClosed(send);
  const close = isOverStorage(engine, spec, used, closed);
  if (close !== closed) await send('CONFIG', 'SET', 'maxmemory', close ? noGrowth : String(dataMemoryBytes(spec)));
  const holed = await store.hasHole();
  if (holed || used > spec.storage_gb * engine.gigabyteBytes * rewriteShare)
    await rewriteFile(store, { closed: close, holed }, send);
}

/** Replication lag of a replica; null for a primary. */
function lagOf(role: Map<string, string>): number | null {
  if (role.get('role') !== 'slave') return null;
  const since =
    role.get('master_link_status') === 'up'
      ? role.get('master_last_io_seconds_ago')
      : role.get('master_link_down_since_seconds');
  const seconds = Number(since);
  // The primary pings once a second; -1: no connection yet.
  return Number.isNaN(seconds) || seconds < 0 ? null : Math.max(0, seconds - 1);
}

/**
 * A rewrite removes deleted data and holes from the file; a closed server does not grow enough to trigger an automatic
 * rewrite.
 */
async function rewriteFile(
  store: ServerStore,
  { closed, holed }: { closed: boolean; holed: boolean },
  send: SendCommand,
): Promise<void> {
  const state = infoFieldsOf(await send('INFO', 'persistence'));
  if (state.get('aof_rewrite_in_progress') !== '0') return;
  const grown = Number(state.get('aof_current_size')) > 1.2 * Number(state.get('aof_base_size')) + (1 << 16);
  const bytes = Number(infoFieldsOf(await send('INFO', 'memory')).get('used_memory_dataset'));
  const before = (await store.readNote<RewriteNote>('rewrite'))?.bytes ?? Infinity;
  const smaller = bytes < before * shrunkShare || state.get('aof_last_bgrewrite_status') === 'err';
  if (!grown && !holed && !(closed && smaller)) return;
  await send('BGREWRITEAOF');
  await store.writeNote('rewrite', { bytes } satisfies RewriteNote);
}

// Only on a dedicated disk, where all written data occupy blocks: see moveToLargerDisk.
async function hasHole({ path: home, data }: ServerDirectory): Promise<boolean> {
  if (placeOfData(home) === home) return false;
  const directory = path.join(data, 'appendonlydir');
  for (const name of await readdir(directory).catch(() => [])) {
    const { size, blocks } = (await stat(path.join(directory, name)).catch(absentIsNull)) ?? { size: 0, blocks: 0 };
    if (size - blocks * 512 > HOLE_BYTES) return true;
  }
  return false;
}

async function isClosed(send: SendCommand): Promise<boolean> {
  const [, value] = (await send('CONFIG', 'GET', 'maxmemory')) as string[];
  return value === noGrowth;
}

async function liveSettingsDiffer(spec: DatabaseServer, send: SendCommand): Promise<boolean> {
  for (const [name, value] of liveSettings(spec)) {
    const [, present] = (await send('CONFIG', 'GET', name)) as string[];
    if (present !== value) return true;
  }
  return false;
}

async function roleDiffers(spec: DatabaseServer, role: Map<string, string>, send: SendCommand): Promise<boolean> {
  if (spec.replica_of === null) return role.get('role') !== 'master';
  const [, password] = (await send('CONFIG', 'GET', 'masterauth')) as string[];
  return (
    role.get('role') !== 'slave' ||
    role.get('master_port') !== String(spec.replica_of.port) ||
    password !== spec.replica_of.password
  );
}

// Each server version formats rules differently, so the server's own output is recorded.
async function usersDiffer(store: ServerStore, spec: DatabaseServer, send: SendCommand): Promise<boolean> {
  const note = await store.readNote<UsersNote>('users');
  return note?.desired !== desiredDigestOf(spec) || note.observed !== (await foundUsers(send));
}

function desiredDigestOf(spec: DatabaseServer): string {
  return digest(JSON.stringify(accountsOf(spec)));
}

async function foundUsers(send: SendCommand): Promise<string> {
  return digest(((await send('ACL', 'LIST')) as string[]).sort().join('\n'));
}

async function hashesOf(send: SendCommand): Promise<Map<string, string[]>> {
  const lines = (await send('ACL', 'LIST')) as string[];
  return new Map(
    lines.map((line) => [
      line.split(' ')[1] ?? '',
      [...line.matchAll(/#([0-9a-f]{64})/g)].map(([, hash = '']) => hash),
    ]),
  );
}

/** @param since client ids from this one on are kept; undefined: all sessions end */
async function endSessions(send: SendCommand, username: string, since: number | undefined): Promise<void> {
  if (since === undefined) return void (await send('CLIENT', 'KILL', 'USER', username, 'SKIPME', 'yes'));
  for (const line of String(await send('CLIENT', 'LIST')).split('\n')) {
    // A field begins behind a space, which names that clients choose (`lib-name=user=other`) cannot contain.
    const [, id, user] = /^id=(\d+) .* user=(\S+)/.exec(line) ?? [];
    // The session may have ended by itself.
    if (user === username && Number(id) < since) await send('CLIENT', 'KILL', 'ID', String(id)).catch(() => undefined);
  }
}
