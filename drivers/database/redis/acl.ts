// Accounts of a Redis or Valkey server. `default` is the first user under another name, for programs that know only a
// password (`AUTH password`, `rediss://:password@host`). The platform's account name contains the id of the server, so
// that a successful login identifies the server.
import { createHash } from 'node:crypto';
import type { DatabaseServer, ServerUser } from '../../database';
import { DriverError } from '../../../core/driver';

/** `rules` in the syntax of ACL SETUSER. */
interface Account {
  username: string;
  rules: string[];
}

/** Who logs in with a password alone (redis.io, "AUTH"). */
const DEFAULT_USER = 'default';

const everything = ['~*', '&*'];
// Not in @admin, but with effects beyond the data: MIGRATE connects to any host, SCRIPT DEBUG blocks the server.
const harmful = ['-@admin', '-migrate', '-script|debug'];
const allAtOnce = ['-flushall', '-flushdb', '-swapdb', '-function'];
const listening = ['+subscribe', '+psubscribe', '+ssubscribe', '+unsubscribe', '+punsubscribe', '+sunsubscribe'];
const readingScripts = ['+eval_ro', '+evalsha_ro', '+fcall_ro'];
// Of @admin, but harmless. CONFIG is not among them: no rule limits it to a parameter, and CONFIG GET shows passwords.
const harmless = ['+role', '+lastsave'];
const inspecting = ['+slowlog', '+latency', '+client|list', '+module|list'];

const rulesOf: Record<ServerUser['access'], string[]> = {
  admin: ['+@all', ...harmful, ...harmless, ...inspecting],
  read_write: ['+@all', ...harmful, ...harmless, ...allAtOnce, '+fcall', '+fcall_ro'],
  // INFO, KEYS and SORT_RO are @dangerous; clients send INFO when they connect.
  read_only: [
    '-@all',
    '+@read',
    '+@connection',
    '+@transaction',
    ...listening,
    ...readingScripts,
    '-@dangerous',
    ...harmful,
    ...harmless,
    '+info',
    '+keys',
    '+sort_ro',
  ],
};

export function adminOf(id: string): string {
  return `platform_${id}`;
}

/** Account of replicas, with the administrator password of their primary. */
export function followerOf(id: string): string {
  return `platform_${id}_replica`;
}

/** All desired accounts, those of the platform first. @throws DriverError invalid */
export function accountsOf(spec: DatabaseServer): Account[] {
  const admin = [...everything, '+@all'];
  const follower = ['-@all', '+psync', '+replconf', '+ping'];
  return [
    account(adminOf(spec.id), [spec.admin_password], admin),
    account(followerOf(spec.id), [spec.admin_password], follower),
    defaultUser(spec.users[0]),
    ...spec.users.map((user) => tenantAccount(requireFree(user.username), user)),
  ];
}

/** Configuration lines; only hashes of passwords are stored. */
export function aclLines(spec: DatabaseServer): string[] {
  return accountsOf(spec).map(({ username, rules }) => `user ${username} ${rules.join(' ')}`);
}

/** Password hash in the format of the server. */
function hashOf(password: string): string {
  return createHash('sha256').update(password).digest('hex');
}

/** A server always has the user `default`, which is on and without a password unless rules say otherwise. */
function defaultUser(first: ServerUser | undefined): Account {
  return first === undefined ? { username: DEFAULT_USER, rules: ['off'] } : tenantAccount(DEFAULT_USER, first);
}

function tenantAccount(username: string, { password, previous_password, access }: ServerUser): Account {
  return account(username, [password, previous_password], [...everything, ...rulesOf[access]]);
}

function account(username: string, passwords: (string | undefined)[], permissions: string[]): Account {
  const hashes = passwords.flatMap((one) => (one === undefined ? [] : [`#${hashOf(one)}`]));
  return { username, rules: ['on', ...hashes, ...permissions] };
}

function requireFree(username: string): string {
  if (!/^[a-z][a-z0-9_]{0,30}$/.test(username) || username === DEFAULT_USER || username.startsWith('platform_')) {
    throw new DriverError('invalid', `The name ${JSON.stringify(username)} is reserved by the engine.`);
  }
  return username;
}
