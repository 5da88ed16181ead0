import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import { limits } from '../../core/limits';
import { mintId } from '../../core/ids';
import type { CreateDatabaseUserInput, RotateDatabasePasswordInput, DatabaseUserAccess } from '../../schema/types';
import { Resource } from '../base/resource';
import { requireUnattached } from './database_attachment/in_use';
import { refreshVariables } from './database_attachment/variables';
import { requireAlive, untilApplied } from './database/applied';
import { wakeDatabase } from './database/wake';
import { newPassword } from './database/credentials';
import { loginOf, nextLogin } from './database_user/logins';
import { openPassword, sealPassword } from './database_user/password';
import { requireFeature } from './database/offer';
import { named } from '../../db/statement';

const DEFAULT = named('select id from database_users where database_id = $1 and is_default');
const PENDING = named(`select 1 from database_users u join databases d on d.id = u.database_id
  where u.database_id = $1 and u.applied_version < u.version and d.project_id = $2 and d.running
    and d.status = 'available' limit 1`);
const ATTACHED = named('select 1 from database_attachments where user_id = $1 limit 1');
const NO_ROTATION = { login: null, previous_password: null, previous_login: null, previous_until: null };

/** Names that one of the engines has for itself, or that the platform works under. */
const RESERVED = [
  'postgres',
  'root',
  'mysql',
  'mariadb',
  'default',
  'public',
  'none',
  'user',
  'current_user',
  'current_role',
  'session_user',
  'replication',
  'admin',
  'administrator',
];
const RESERVED_PREFIXES = ['pg_', 'platform_', 'mariadb_', 'mysql_'];

interface Parent {
  id: string;
  project_id: string;
  engine: string;
  engine_version: string;
  on_cluster: boolean;
  username: string;
  requireStatus(allowed: readonly string[]): void;
}

/** A login of a database. The row says what should be; the job of the database brings it to the server. */
export class DatabaseUser extends Resource {
  static readonly table = 'database_users';
  static readonly kind = 'database_user';
  static readonly idPrefix = 'dbu';
  static override readonly parentLimit = {
    column: 'database_id',
    max: limits.databaseUsersMax,
    resource: 'database_users',
    parent: 'A database',
    rows: 'users',
  };
  static override readonly filters = { username: 'username = ?', access: 'access = ?' };
  static override readonly sorts = ['username'];

  declare database_id: string;
  declare username: string;
  declare access: DatabaseUserAccess;
  declare is_default: boolean;
  /** Sealed. */
  declare password: string;
  /** See models/databases/database_user/logins.ts. */
  declare login: string | null;
  /** Sealed. */
  declare previous_password: string | null;
  declare previous_login: string | null;
  declare previous_until: string | null;
  /** The server has the password of this version of the row. */
  declare applied_version: number;
  /** The password in plain, where this answer shows it. */
  declare shown?: string;

  /** The user that every database has. */
  static addDefault(ctx: Context, database: Parent): Promise<DatabaseUser> {
    return add(ctx, database, { username: database.username, access: 'admin', is_default: true });
  }

  /** @throws validation_failed, engine_feature_unsupported, invalid_state, quota_exceeded, already_exists */
  static async create(ctx: Context, database: Parent, input: CreateDatabaseUserInput): Promise<DatabaseUser> {
    requireFree(input.username);
    await requireFeature(ctx, database, 'users');
    requireAlive(database);
    const user = await add(ctx, database, {
      username: input.username,
      access: input.access ?? 'read_write',
      is_default: false,
    });
    await wakeDatabase(ctx.sql, database.id);
    return user;
  }

  static async defaultOf(ctx: Context, databaseId: string): Promise<DatabaseUser> {
    const [row] = await ctx.sql.query<{ id: string }>(DEFAULT, [databaseId]);
    return DatabaseUser.get(ctx, row?.id ?? '', { database_id: databaseId });
  }

  /** Waits until the server has applied all users of a database, for `operationWaitSeconds` at most. */
  static async applied(ctx: Context, databaseId: string): Promise<void> {
    await untilApplied(ctx, async () => (await ctx.sql.query(PENDING, [databaseId, ctx.project?.id])).length > 0);
  }

  /**
   * A new password, also in the variables of attachments. The previous one stays valid while attached applications need
   * it, unless it must end at once. The database must be locked. @throws invalid_state, resource_busy
   */
  async rotate(ctx: Context, database: Parent, { immediate }: RotateDatabasePasswordInput): Promise<this> {
    database.requireStatus(['available']);
    const attached = !immediate && (await ctx.sql.query(ATTACHED, [this.id])).length > 0;
    if (attached && this.previous_password !== null) throw rotating();
    const password = newPassword();
    await this.update(ctx, {
      password: sealPassword(ctx.secrets, this.id, password),
      ...(attached ? this.previous(database.engine) : NO_ROTATION),
    });
    this.shown = password;
    await refreshVariables(ctx, { database_id: database.id, user_id: this.id });
    await wakeDatabase(ctx.sql, database.id);
    return this;
  }

  /** @throws resource_protected for the default user, resource_in_use while an attachment uses it */
  async destroy(ctx: Context): Promise<void> {
    if (this.is_default)
      throw problem(
        'resource_protected',
        'The default user cannot be deleted on its own. It is deleted with its database.',
      );
    await requireUnattached(ctx, 'user_id', [this.id]);
    await this.remove(ctx);
    await wakeDatabase(ctx.sql, this.database_id);
  }

  /** How to log in with the present password. */
  credentials(ctx: Context): { username: string; password: string } {
    return { username: loginOf(this), password: this.reveal(ctx) };
  }

  // What the server keeps for a while.
  private previous(engine: string): Partial<DatabaseUser> {
    return {
      login: nextLogin(engine, this),
      previous_password: this.password,
      previous_login: this.login,
      previous_until: new Date(Date.now() + limits.passwordRotationMinutesMax * 60_000).toISOString(),
    };
  }

  /** The password in plain. */
  reveal(ctx: Context): string {
    return openPassword(ctx.secrets, this);
  }
}

async function add(
  ctx: Context,
  database: Parent,
  login: { username: string; access: string; is_default: boolean },
): Promise<DatabaseUser> {
  const id = mintId(DatabaseUser.idPrefix);
  const password = newPassword();
  const { id: database_id, project_id } = database;
  const user = await DatabaseUser.insert(ctx, {
    id,
    project_id,
    database_id,
    ...login,
    password: sealPassword(ctx.secrets, id, password),
  });
  user.shown = password;
  return user;
}

function rotating(): Error {
  return problem(
    'resource_busy',
    'Attached applications do not all run with the present password yet. Rotate again when they do, or send ' +
      '`immediate: true` to end all previous passwords at once.',
  );
}

function requireFree(username: string): void {
  if (!RESERVED.includes(username) && !RESERVED_PREFIXES.some((prefix) => username.startsWith(prefix))) return;
  throw validationFailed([
    { field: 'username', code: 'invalid_format', detail: 'is a name that the engine or the platform reserves' },
  ]);
}
