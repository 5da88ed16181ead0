import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import type { CreateDatabaseAttachmentInput } from '../../schema/types';
import { Application } from '../applications/application';
import { Resource } from '../base/resource';
import { defaultPrefix, variableNames, attachmentVariablesOf } from './database_attachment/variables';
import { wakeDatabase } from './database/wake';
import { DatabaseEndpoint } from './database_endpoint';
import { DatabaseUser } from './database_user';
import { addManaged, removeManaged, requireKeysFree } from '../environment/environment_variable/managed';
import type { ManagedDatabase } from './database';
import { named } from '../../db/statement';

// Before `referenced`, which takes a weaker lock: two who raise theirs at once would wait for each other.
const LOCK_DATABASE = named(
  'select 1 from applications where id = $1 and project_id = $2 and deleted_at is null for no key update',
);
const SAME = named('select id from database_attachments where database_id = $1 and application_id = $2');
const DEFAULT_ENDPOINT = named(
  'select id from database_endpoints where database_id = $1 and is_default and deleted_at is null',
);

/** The use of a database by an application. It has no status: its effect is the variables that it manages. */
export class DatabaseAttachment extends Resource {
  static readonly table = 'database_attachments';
  static readonly kind = 'database_attachment';
  static readonly idPrefix = 'att';
  static override readonly filters = { application_id: 'application_id = ?', database_id: 'database_id = ?' };
  static override readonly sorts = ['env_prefix'];

  declare database_id: string;
  declare application_id: string;
  declare endpoint_id: string;
  declare user_id: string;
  declare env_prefix: string;

  /** As the activity names it. */
  get name(): string {
    return this.env_prefix;
  }

  /**
   * With its variables, all or none. The caller holds the database (`ManagedDatabase.ofChild`).
   * @throws reference_not_found, env_key_reserved, already_exists, env_key_conflict, quota_exceeded
   */
  static async create(
    ctx: Context,
    database: ManagedDatabase,
    input: CreateDatabaseAttachmentInput,
  ): Promise<DatabaseAttachment> {
    await ctx.sql.query(LOCK_DATABASE, [input.application_id, ctx.project?.id]);
    const application = await Application.referenced(ctx, input.application_id, 'application_id');
    const endpoint = await endpointOf(ctx, database, input.endpoint_id ?? null);
    const user = await userOf(ctx, database, input.user_id ?? null);
    const env_prefix = input.env_prefix ?? defaultPrefix(database.engine);
    await requireNew(ctx, database, application);
    await requireKeysFree(ctx, application.id, variableNames(env_prefix, database.engine));
    const attachment = await DatabaseAttachment.insert(ctx, {
      database_id: database.id,
      application_id: application.id,
      endpoint_id: endpoint.id,
      user_id: user.id,
      env_prefix,
    });
    await addManaged(
      ctx,
      attachment,
      attachmentVariablesOf(ctx.config, env_prefix, database, endpoint, user.credentials(ctx)),
    );
    await openForPods(ctx, database.id);
    return attachment;
  }

  /** Takes its variables out of the application. The caller holds the database. */
  async destroy(ctx: Context): Promise<void> {
    await ctx.sql.query(LOCK_DATABASE, [this.application_id, this.project_id]);
    await removeManaged(ctx, this);
    await this.remove(ctx);
    await openForPods(ctx, this.database_id);
  }
}

/** Servers accept connections of pods while applications are attached to them. */
async function openForPods({ sql, config }: Context, databaseId: string): Promise<void> {
  if (config.workloads === 'kubernetes') await wakeDatabase(sql, databaseId);
}

/** @throws already_exists with resource_id */
async function requireNew(ctx: Context, database: ManagedDatabase, application: Application): Promise<void> {
  const [same] = await ctx.sql.query<{ id: string }>(SAME, [database.id, application.id]);
  if (same)
    throw problem('already_exists', 'The database is attached to this application already.', { resource_id: same.id });
}

async function endpointOf(ctx: Context, database: ManagedDatabase, id: string | null): Promise<DatabaseEndpoint> {
  const [row] = id === null ? await ctx.sql.query<{ id: string }>(DEFAULT_ENDPOINT, [database.id]) : [{ id }];
  return requireOf(database, await DatabaseEndpoint.referenced(ctx, row?.id ?? '', 'endpoint_id'), 'endpoint_id');
}

async function userOf(ctx: Context, database: ManagedDatabase, id: string | null): Promise<DatabaseUser> {
  if (id === null) return DatabaseUser.defaultOf(ctx, database.id);
  return requireOf(database, await DatabaseUser.referenced(ctx, id, 'user_id'), 'user_id');
}

/** @throws reference_not_found for a row of another database */
function requireOf<R extends { database_id: string }>(database: ManagedDatabase, row: R, field: string): R {
  if (row.database_id === database.id) return row;
  throw problem('reference_not_found', `${field} names nothing of this database.`, { field });
}
