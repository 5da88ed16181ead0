// Loads a dump into a server that has nothing else yet. Its text comes from a tenant: the client may be led to take a
// part of a name or of a routine for a statement. So it runs with an account that has rights in the database only, and
// may name any definer; and while it runs, no account of the server has more rights to lend.
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { ProgramFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { grantEverything, adminOf } from './config';
import { identifier, withServer, type Query } from './connection';
import { lockDefiner } from './definers';
import { loadSettings } from './dump';
import { loadText } from './dump_text';
import type { ServerNotes } from '../server_notes';
import { databaseOf, grantedDatabase } from './privileges';
import { toolOf } from './server';
import { ensureTimeZones } from './time_zones';
import {
  closeToolAccount,
  requireToolSuccess,
  openToolAccount,
  PACKET_BYTES_MAX,
  spawnTool,
  type ToolAccess,
  type ToolAccount,
} from './tool';

// Views of the system tables belong to it.
const ENGINE_USER = `'mariadb.sys'@'localhost'`;

/**
 * Replaces the database by the dumps in `files`, one after another. Tenant users are unlocked by `ensure` only, so
 * nobody can read incomplete data. Restarted after a crash. @throws DriverError transient with the reason, invalid
 */
export async function load(
  { access, notes }: { access: ToolAccess; notes: ServerNotes },
  spec: DatabaseServer,
  found: ProgramFound,
  files: string | readonly string[],
  ctx: DriverContext,
): Promise<void> {
  const tool = toolOf(found, 'mariadb');
  const name = identifier(databaseOf(spec));
  const work = async (query: Query): Promise<void> => {
    await query(`DROP DATABASE IF EXISTS ${name}`);
    await query(`CREATE DATABASE ${name}`);
    // Events may name one.
    await ensureTimeZones(notes, found, query);
    const account = await openToolAccount(access, spec.id, 'load', query);
    await query(`GRANT ALL PRIVILEGES ON ${grantedDatabase(spec)}.* TO ${account.name}`);
    await query(`GRANT SET USER ON *.* TO ${account.name}`);
    try {
      await withoutAdminRights(spec, access, query, async () => {
        for (const file of [files].flat()) await run(access, spec, { tool, account, file }, query, ctx);
      });
    } finally {
      await closeToolAccount(account, (end) => end(query));
    }
    await requireOwnDefiners(spec, query);
  };
  await withServer(access, spec, work, ctx);
}

/**
 * This session keeps the rights that its account had when it began; the account has none until the end. If the platform
 * is killed, the server is started anew before the next attempt, which gives them back (`firstStatements`).
 */
async function withoutAdminRights(
  spec: DatabaseServer,
  { accountHost }: ToolAccess,
  query: Query,
  work: () => Promise<void>,
): Promise<void> {
  const [packet] = await query('SELECT @@GLOBAL.max_allowed_packet AS bytes');
  const admin = `'${adminOf(spec.id)}'@'${accountHost}'`;
  const others = await query(
    `SELECT User, Host FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.access') <> 0 AND User NOT LIKE 'platform%'`,
  );
  for (const { User: user, Host: host } of others) await query('DROP USER ?@?', [String(user), String(host)]);
  await query(`SET GLOBAL max_allowed_packet = ${PACKET_BYTES_MAX}`);
  const [reader] = await query(
    `SELECT 1 FROM mysql.tables_priv WHERE User = 'mariadb.sys' AND Table_name = 'global_priv'`,
  );
  if (reader) await query(`REVOKE SELECT, DELETE ON mysql.global_priv FROM ${ENGINE_USER}`);
  await query(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${admin}`);
  try {
    await work();
  } finally {
    await query(grantEverything(spec.id, accountHost)).catch(() => undefined);
    if (reader) await query(`GRANT SELECT, DELETE ON mysql.global_priv TO ${ENGINE_USER}`).catch(() => undefined);
    await query(`SET GLOBAL max_allowed_packet = ${Number(packet?.bytes)}`).catch(() => undefined);
  }
}

async function run(
  access: ToolAccess,
  spec: DatabaseServer,
  { tool, account, file }: { tool: string; account: ToolAccount; file: string },
  query: Query,
  ctx: DriverContext,
): Promise<void> {
  const child = spawnTool(
    access,
    tool,
    account,
    [
      '--binary-mode',
      // Of routines too, which are theirs.
      '--comments',
      `--max-allowed-packet=${PACKET_BYTES_MAX}`,
      `--init-command=SET ${loadSettings}`,
      '--',
      databaseOf(spec),
    ],
    ctx,
  );
  const text = loadText((username) => lockDefiner(spec, username, 'open', query));
  const source = pipeline(createReadStream(file), createGunzip(), text, child.stdin!).catch((error: Error) => {
    child.kill('SIGKILL');
    throw error;
  });
  const [ended, read] = await Promise.allSettled([
    requireToolSuccess(child, 'The backup could not be loaded.'),
    source,
  ]);
  // The client closes its input when it fails: then its reason says more. If it was killed, the file's does.
  if (read.status === 'rejected' && !['EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'].includes(codeOf(read.reason)))
    throw Object.assign(new DriverError('transient', 'The file of the backup could not be read.'), {
      cause: read.reason,
    });
  if (ended.status === 'rejected') throw ended.reason;
}

function codeOf(error: unknown): string {
  return String((error as NodeJS.ErrnoException).code);
}

/** Tenant code must run as a tenant: an account of the platform may have been named in the dump. */
async function requireOwnDefiners(spec: DatabaseServer, query: Query): Promise<void> {
  const name = databaseOf(spec);
  const rows = await query(
    `SELECT definer FROM mysql.proc WHERE db = ? UNION SELECT definer FROM mysql.event WHERE db = ?
      UNION SELECT DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ?
      UNION SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ?`,
    [name, name, name, name],
  );
  if (rows.some(({ definer }) => !String(definer).endsWith('@%') || String(definer).startsWith('platform_')))
    throw new DriverError('invalid', 'The backup holds code that would run with rights of the platform.');
}
