// Accounts that views, routines, triggers and events run as. Where the tenant has no such user, in a copy or since the
// user was deleted, a locked account keeps its place: nobody can log in with it, and what belongs to it still works.
import type { DatabaseServer } from '../../database';
import { databaseOf, grantedDatabase, privilegesOf, privilegesWhenFull } from './privileges';
import type { Query } from './connection';

/** Makes the account, or locks it. It has the rights of those who may make such objects. */
export async function lockDefiner(
  spec: DatabaseServer,
  username: string,
  writes: 'open' | 'closed',
  query: Query,
): Promise<void> {
  const who = `'${username}'@'%'`;
  const privileges = writes === 'closed' ? privilegesWhenFull.admin : privilegesOf.admin;
  await query(`CREATE USER IF NOT EXISTS ${who} ACCOUNT LOCK`);
  await query(`ALTER USER ${who} ACCOUNT LOCK`);
  await query(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${who}`);
  await query(`GRANT ${privileges} ON ${grantedDatabase(spec)}.* TO ${who}`);
}

/** Names of locked accounts of tenants. */
export async function lockedDefiners(query: Query): Promise<string[]> {
  const rows = await query(
    `SELECT User FROM mysql.global_priv
      WHERE Host = '%' AND JSON_VALUE(Priv, '$.account_locked') = 1 AND User NOT LIKE 'platform\\_%'`,
  );
  return rows.map(({ User: user }) => String(user));
}

/** Whether an object in the database belongs to the user. */
export async function isDefiner(spec: DatabaseServer, username: string, query: Query): Promise<boolean> {
  const [name, definer] = [databaseOf(spec), `${username}@%`];
  const rows = await query(
    `SELECT 1 FROM mysql.proc WHERE db = ? AND definer = ?
      UNION SELECT 1 FROM mysql.event WHERE db = ? AND definer = ?
      UNION SELECT 1 FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = ? AND DEFINER = ?
      UNION SELECT 1 FROM information_schema.VIEWS WHERE TABLE_SCHEMA = ? AND DEFINER = ?`,
    [name, definer, name, definer, name, definer, name, definer],
  );
  return rows.length > 0;
}
