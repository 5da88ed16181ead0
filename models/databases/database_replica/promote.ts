// Promotion of a replica to an independent database. Its server keeps the data, the users and the passwords: the new
// database takes over its directory, its port and its operating-system user.
import type { Context } from '../../../core/context';
import { mintId } from '../../../core/ids';
import { meter } from '../../base/metering';
import { DatabaseEndpoint } from '../database_endpoint';
import type { DatabaseReplica } from '../database_replica';
import { DatabaseUser } from '../database_user';
import { openPassword, sealPassword } from '../database_user/password';
import { ManagedDatabase } from '../database';
import { transferPort } from '../../reference/capacity';
import { openAdminPassword, sealAdminPassword } from '../database/credentials';
import { wakeDatabase } from '../database/wake';
import { named } from '../../../db/statement';
import { removeEndpointsOf } from './endpoints';

const PRIMARY = named(`select admin_password, engine, engine_version, storage_gb, database_name, username,
  backup_schedule, maintenance_window, system_identifier from databases where id = $1`);
const SERVER = named('select server_id, port, tenant, tls_certificate, tls_key from database_replicas where id = $1');
const USERS = named(
  'select id, username, access, is_default, password from database_users where database_id = $1 order by id',
);
const NAMED = named('select 1 from databases where project_id = $1 and name = $2 and deleted_at is null');

/**
 * The new database, `provisioning`, with the users of the primary and a default endpoint; the replica is `promoting`
 * until the job has made its server a primary. The caller holds the lock of the primary.
 * @throws invalid_state, resource_busy, resource_in_use where an attachment uses an endpoint of the replica,
 * quota_exceeded
 */
export async function promoteReplica(ctx: Context, replica: DatabaseReplica): Promise<ManagedDatabase> {
  replica.requireStatus(['available']);
  await removeEndpointsOf(ctx, replica);
  const database = await insertDatabase(ctx, replica);
  await transferPort(ctx.sql, replica.id, database.id);
  await copyUsers(ctx, replica.database_id, database);
  await DatabaseEndpoint.addDefault(ctx, database);
  await replica.move(ctx, 'promoting');
  // From now on its cost is billed to the new database.
  meter(ctx, replica, null);
  await wakeDatabase(ctx.sql, replica.database_id);
  return database;
}

async function insertDatabase(ctx: Context, replica: DatabaseReplica): Promise<ManagedDatabase> {
  const [primary] = (await ctx.sql.query<ManagedDatabase>(PRIMARY, [replica.database_id])) as [ManagedDatabase];
  const { admin_password, ...kept } = primary;
  const [server] = await ctx.sql.query<object>(SERVER, [replica.id]);
  const id = mintId(ManagedDatabase.idPrefix);
  const { region, database_package, nodes } = replica;
  return ManagedDatabase.insert(ctx, {
    ...kept,
    id,
    name: await freeName(ctx, replica, id),
    region,
    database_package,
    nodes,
    ...server,
    admin_password: sealAdminPassword(
      ctx.secrets,
      id,
      openAdminPassword(ctx.secrets, { id: replica.database_id, admin_password }),
    ),
  });
}

/** The replica's name if it is free in the project, else with the last 8 characters of the id, which are random. */
async function freeName(ctx: Context, replica: DatabaseReplica, id: string): Promise<string> {
  const [taken] = await ctx.sql.query(NAMED, [replica.project_id, replica.name]);
  return taken ? `${replica.name.slice(0, 31).replace(/-$/, '')}-${id.slice(-8)}` : replica.name;
}

interface User {
  id: string;
  username: string;
  access: string;
  is_default: boolean;
  password: string;
}

async function copyUsers(ctx: Context, from: string, { id: database_id, project_id }: ManagedDatabase): Promise<void> {
  for (const user of await ctx.sql.query<User>(USERS, [from])) {
    const id = mintId(DatabaseUser.idPrefix);
    const { username, access, is_default } = user;
    const password = sealPassword(ctx.secrets, id, openPassword(ctx.secrets, user));
    await DatabaseUser.insert(ctx, {
      id,
      project_id,
      database_id,
      username,
      access,
      is_default,
      password,
    });
  }
}
