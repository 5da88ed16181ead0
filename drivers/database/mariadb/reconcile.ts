// Reconciles a running server without a restart: its database, its users and its storage limit. What this needs beside
// the connection is the same for a process of this host and for a pod (`ServerStore`).
import type { DatabaseServer, ServerUser } from '../../database';
import { DriverError } from '../../../core/driver';
import { usedBytes, type EngineContext, type ServerDirectory } from '../../hosted_server/server_directory';
import type { ServerState } from '../proxied';
import { digest, isOverStorage } from '../proxied_server';
import { notesOf, type ServerNotes } from '../server_notes';
import { adminOf, hashOf, toolAccountOf } from './config';
import { identifier, type AccountHost, type Query, type Row } from './connection';
import { isDefiner, lockDefiner, lockedDefiners } from './definers';
import { databaseOf, grantedDatabase, privilegesOf, privilegesWhenFull } from './privileges';
import { lacksTimeZones } from './time_zones';

/** What the platform keeps about a server, and what it knows of its files. */
export interface ServerStore extends ServerNotes {
  usedBytes(): Promise<number>;
  accountHost: AccountHost;
}

/** Of a server of this host. */
export function storeOf(serverDirectory: ServerDirectory): ServerStore {
  return {
    ...notesOf(serverDirectory),
    usedBytes: () => usedBytes(serverDirectory.data),
    accountHost: 'localhost',
  };
}

/** By user: digests of the desired state, and of the state found in the server after it was applied. */
interface UsersNote {
  full: boolean;
  users: Record<string, KnownUser>;
}

interface KnownUser {
  wanted: string;
  found: string;
  /** During a rotation: the desired digest without the previous password, and the first connection with the new one. */
  rotation?: { wanted: string; connection: number };
}

const engineUsers = ['mariadb.sys'];
const TLS = 'REQUIRE NONE';

/** Read-only. */
export async function inspectServer(
  engine: Pick<EngineContext, 'gigabyteBytes'>,
  store: ServerStore,
  spec: DatabaseServer,
  query: Query,
): Promise<ServerState> {
  const used = await store.usedBytes();
  const note = await noteOf(store);
  const full = isOverStorage(engine, spec, used, note.full);
  const differs = [
    (await hasDatabase(spec, query)) ? null : 'database',
    full === note.full ? null : 'storage limit',
    (await strayUsers(spec, store, query)).length + (await changedUsers(spec, note, query)).length > 0 ? 'users' : null,
    (await lacksTimeZones(store, query)) ? 'time zones' : null,
  ].filter((one) => one !== null);
  return {
    differs: differs.length === 0 ? null : differs.join(', '),
    storageUsedBytes: used,
    full: note.full,
    lagSeconds: null,
  };
}

/** Reconciles everything. Sessions of a user end when its password or privileges change. */
export async function ensureContent(
  engine: Pick<EngineContext, 'gigabyteBytes'>,
  store: ServerStore,
  spec: DatabaseServer,
  query: Query,
): Promise<void> {
  if (!(await hasDatabase(spec, query))) await query(`CREATE DATABASE ${identifier(databaseOf(spec))}`);
  const before = await noteOf(store);
  const note = { full: before.full, users: { ...before.users } };
  note.full = isOverStorage(engine, spec, await store.usedBytes(), note.full);
  for (const user of await changedUsers(spec, note, query)) {
    await grant(spec, user, note.full, query);
    const known = note.users[user.username];
    const rotation = await rotationOf(spec, user, note.full, query);
    note.users[user.username] = {
      wanted: desiredDigestOf(spec, user, note.full),
      found: await accountDigestOf(user.username, query),
      ...(rotation && { rotation }),
    };
    if (rotation && known?.wanted === desiredDigestOf(spec, beforeRotation(user), note.full)) continue;
    const isNewOne = known?.rotation?.wanted === desiredDigestOf(spec, user, note.full);
    await endSessions(user.username, query, isNewOne ? known?.rotation?.connection : undefined);
  }
  for (const { User: username, Host: host } of await strayUsers(spec, store, query)) {
    if (host === '%' && (await isDefiner(spec, String(username), query)))
      await lockDefiner(spec, String(username), note.full ? 'closed' : 'open', query);
    else await query('DROP USER ?@?', [String(username), String(host)]);
    await endSessions(String(username), query);
  }
  if (note.full !== before.full) {
    for (const username of await lockedDefiners(query))
      await lockDefiner(spec, username, note.full ? 'closed' : 'open', query);
  }
  const kept = spec.users.map(({ username }) => [username, note.users[username]]);
  const now = { full: note.full, users: Object.fromEntries(kept) };
  if (JSON.stringify(now) !== JSON.stringify(before)) await store.writeNote('users', now);
}

async function grant(
  spec: DatabaseServer,
  { username, password, previous_password, access }: ServerUser,
  full: boolean,
  query: Query,
): Promise<void> {
  const who = `${quotedName(username)}@'%'`;
  await query(`CREATE USER IF NOT EXISTS ${who} ACCOUNT LOCK`);
  const passwords = [password, ...(previous_password === undefined ? [] : [previous_password])];
  const proofs = passwords.map((one) => `mysql_native_password USING '${hashOf(one)}'`);
  await query(`ALTER USER ${who} IDENTIFIED VIA ${proofs.join(' OR ')} ${TLS} ACCOUNT UNLOCK`);
  await query(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${who}`);
  await query(`GRANT ${(full ? privilegesWhenFull : privilegesOf)[access]} ON ${grantedDatabase(spec)}.* TO ${who}`);
}

/** The rotation, while two passwords are valid. */
async function rotationOf(
  spec: DatabaseServer,
  { previous_password: _, ...user }: ServerUser,
  full: boolean,
  query: Query,
): Promise<KnownUser['rotation']> {
  if (_ === undefined) return undefined;
  const [row] = await query('SELECT CONNECTION_ID() AS id');
  return { wanted: desiredDigestOf(spec, user, full), connection: Number(row?.id) };
}

/** The user before the pending rotation. */
function beforeRotation({ previous_password, ...user }: ServerUser): ServerUser {
  return { ...user, password: previous_password ?? user.password };
}

/** @param since connections with this id or a later one are kept */
async function endSessions(username: string, query: Query, since = Infinity): Promise<void> {
  for (const { id } of await query('SELECT id FROM information_schema.processlist WHERE user = ?', [username])) {
    if (Number(id) > since) continue;
    // The session may have ended by itself.
    await query('KILL CONNECTION ?', [Number(id)]).catch(() => undefined);
  }
}

async function hasDatabase(spec: DatabaseServer, query: Query): Promise<boolean> {
  return (
    (await query('SELECT 1 FROM information_schema.schemata WHERE schema_name = ?', [databaseOf(spec)])).length > 0
  );
}

async function changedUsers(spec: DatabaseServer, note: UsersNote, query: Query): Promise<ServerUser[]> {
  const changed: ServerUser[] = [];
  for (const user of spec.users) {
    requireFree(user.username);
    const known = note.users[user.username];
    if (
      known?.wanted !== desiredDigestOf(spec, user, note.full) ||
      known.found !== (await accountDigestOf(user.username, query))
    )
      changed.push(user);
  }
  return changed;
}

// Includes users made by the installation: root, and anonymous users, which take precedence over others from this host.
async function strayUsers(
  spec: DatabaseServer,
  { accountHost }: Pick<ServerStore, 'accountHost'>,
  query: Query,
): Promise<Row[]> {
  const kept = [
    ...spec.users.map(({ username }) => `${username}@%`),
    `${adminOf(spec.id)}@${accountHost}`,
    // A backup may be running.
    `${toolAccountOf(spec.id, 'dump')}@${accountHost}`,
    ...engineUsers.map((name) => `${name}@localhost`),
    ...(await lockedDefiners(query)).map((name) => `${name}@%`),
  ];
  const rows = await query('SELECT User, Host FROM mysql.global_priv');
  return rows.filter(
    ({ User: user, Host: host }) => !kept.includes(`${user}@${host}`) && !String(user).startsWith('PUBLIC'),
  );
}

// A user can change its own password: this is detected here, and reverted.
async function accountDigestOf(username: string, query: Query): Promise<string> {
  const accounts = await query('SELECT * FROM mysql.global_priv WHERE User = ? ORDER BY Host', [username]);
  const rights = await query('SELECT * FROM mysql.db WHERE User = ? ORDER BY Host, Db', [username]);
  return digest(JSON.stringify([accounts, rights]));
}

function desiredDigestOf(spec: DatabaseServer, user: ServerUser, full: boolean): string {
  const { username, password, previous_password, access } = user;
  const more = previous_password === undefined ? [] : [hashOf(previous_password)];
  return digest(JSON.stringify([username, hashOf(password), access, full, spec.database_name, TLS, ...more]));
}

async function noteOf(notes: ServerNotes): Promise<UsersNote> {
  return (await notes.readNote<UsersNote>('users')) ?? { full: false, users: {} };
}

function requireFree(username: string): void {
  if (
    !/^[a-z][a-z0-9_]{0,30}$/.test(username) ||
    ['root', 'mysql', 'public'].includes(username) ||
    username.startsWith('platform_')
  ) {
    throw new DriverError('invalid', `The name ${JSON.stringify(username)} is reserved by the engine.`);
  }
}

function quotedName(username: string): string {
  return `'${username}'`;
}
