// What a running server is brought to without a restart: its database, its users, room on its disk.
import type { ServerSpec, ServerUser } from '../../database';
import { DriverError } from '../../driver';
import { readNote, usedBytes, writeNote, type Estate, type Home } from '../home';
import { adminOf, hashOf } from './config';
import { identifier, type Ask, type Row } from './connection';
import { digest } from './server';

export interface Live {
  /** In words for the operator; null = as wanted. */
  differs: string | null;
  storageUsedBytes: number;
  full: boolean;
}

/** By user: what was wanted, and what the server made of it. */
interface UsersNote {
  full: boolean;
  users: Record<string, { wanted: string; found: string }>;
}

const privilegesOf: Record<ServerUser['access'], string> = {
  admin: 'ALL PRIVILEGES',
  read_write: 'SELECT, INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES, LOCK TABLES, SHOW VIEW',
  read_only: 'SELECT, SHOW VIEW',
};
// Over the storage: what gives room again is allowed. Nobody but the platform can grant the rest.
const privilegesWhenFull: Record<ServerUser['access'], string> = {
  admin: 'SELECT, DELETE, DROP, SHOW VIEW',
  read_write: 'SELECT, DELETE, SHOW VIEW',
  read_only: privilegesOf.read_only,
};
// Below this part of the limit a full server takes writes again.
const roomAgain = 0.9;
const itsOwn = ['mariadb.sys'];

/** Looks only. */
export async function look(estate: Estate, home: Home, spec: ServerSpec, ask: Ask): Promise<Live> {
  const used = await usedBytes(home.data);
  const note = await noteOf(home);
  const full = mustClose(estate, spec, used, note.full);
  const differs = [
    (await hasDatabase(spec, ask)) ? null : 'database',
    full === note.full ? null : 'storage limit',
    (await strayUsers(spec, ask)).length + (await changedUsers(spec, note, ask)).length > 0 ? 'users' : null,
  ].filter((one) => one !== null);
  return { differs: differs.length === 0 ? null : differs.join(', '), storageUsedBytes: used, full: note.full };
}

/** All of it. A user whose password or rights change loses the sessions of before. */
export async function bring(estate: Estate, home: Home, spec: ServerSpec, ask: Ask): Promise<void> {
  if (!(await hasDatabase(spec, ask))) await ask(`CREATE DATABASE ${identifier(databaseOf(spec))}`);
  const note = await noteOf(home);
  note.full = mustClose(estate, spec, await usedBytes(home.data), note.full);
  for (const user of await changedUsers(spec, note, ask)) {
    await grant(spec, user, note.full, ask);
    note.users[user.username] = { wanted: wishOf(spec, user, note.full), found: await foundOf(user.username, ask) };
    await endSessions(user.username, ask);
  }
  for (const { User: username, Host: host } of await strayUsers(spec, ask)) {
    await ask('DROP USER ?@?', [String(username), String(host)]);
    await endSessions(String(username), ask);
  }
  const kept = spec.users.map(({ username }) => [username, note.users[username]]);
  await writeNote(home, 'users', { full: note.full, users: Object.fromEntries(kept) });
}

/** @throws DriverError invalid for what is no name of a database */
export function databaseOf({ database_name: name }: ServerSpec): string {
  if (name === null || !/^[a-z][a-z0-9_]{0,62}$/.test(name))
    throw new DriverError('invalid', 'The name of the database is not one that the engine takes.');
  return name;
}

async function grant(
  spec: ServerSpec,
  { username, password, access }: ServerUser,
  full: boolean,
  ask: Ask,
): Promise<void> {
  const who = `${quotedName(username)}@'%'`;
  await ask(`CREATE USER IF NOT EXISTS ${who} REQUIRE SSL`);
  await ask(`ALTER USER ${who} IDENTIFIED BY PASSWORD '${hashOf(password)}' REQUIRE SSL ACCOUNT UNLOCK`);
  await ask(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${who}`);
  // In GRANT the name of a database is a pattern: _ would stand for any letter.
  const pattern = identifier(databaseOf(spec).replaceAll('_', '\\_'));
  await ask(`GRANT ${(full ? privilegesWhenFull : privilegesOf)[access]} ON ${pattern}.* TO ${who}`);
}

async function endSessions(username: string, ask: Ask): Promise<void> {
  for (const { id } of await ask('SELECT id FROM information_schema.processlist WHERE user = ?', [username])) {
    // It may have ended by itself.
    await ask('KILL CONNECTION ?', [Number(id)]).catch(() => undefined);
  }
}

async function hasDatabase(spec: ServerSpec, ask: Ask): Promise<boolean> {
  return (await ask('SELECT 1 FROM information_schema.schemata WHERE schema_name = ?', [databaseOf(spec)])).length > 0;
}

async function changedUsers(spec: ServerSpec, note: UsersNote, ask: Ask): Promise<ServerUser[]> {
  const changed: ServerUser[] = [];
  for (const user of spec.users) {
    requireFree(user.username);
    const known = note.users[user.username];
    if (known?.wanted !== wishOf(spec, user, note.full) || known.found !== (await foundOf(user.username, ask)))
      changed.push(user);
  }
  return changed;
}

// Also those that the installation makes: root, and the nameless who would stand before all others from this host.
async function strayUsers(spec: ServerSpec, ask: Ask): Promise<Row[]> {
  const kept = [
    ...spec.users.map(({ username }) => `${username}@%`),
    `${adminOf(spec.id)}@localhost`,
    ...itsOwn.map((name) => `${name}@localhost`),
  ];
  const rows = await ask('SELECT User, Host FROM mysql.global_priv');
  return rows.filter(
    ({ User: user, Host: host }) => !kept.includes(`${user}@${host}`) && !String(user).startsWith('PUBLIC'),
  );
}

// A user can change its own password: that is found here, and undone.
async function foundOf(username: string, ask: Ask): Promise<string> {
  const accounts = await ask('SELECT * FROM mysql.global_priv WHERE User = ? ORDER BY Host', [username]);
  const rights = await ask('SELECT * FROM mysql.db WHERE User = ? ORDER BY Host, Db', [username]);
  return digest(JSON.stringify([accounts, rights]));
}

function wishOf(spec: ServerSpec, { username, password, access }: ServerUser, full: boolean): string {
  return digest(JSON.stringify([username, hashOf(password), access, full, spec.database_name]));
}

async function noteOf(home: Home): Promise<UsersNote> {
  return (await readNote<UsersNote>(home, 'users')) ?? { full: false, users: {} };
}

function mustClose(estate: Estate, { storage_gb }: ServerSpec, used: number, closed: boolean): boolean {
  return used > storage_gb * estate.gigabyteBytes * (closed ? roomAgain : 1);
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
