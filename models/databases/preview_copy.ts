// Databases of previews, in the place of those that are attached to the application: empty, or copies of the newest
// backups. They are made by the job of the preview, and live and die with it.
import type { HostFacts } from '../../core/catalog/host_facts';
import type { Config } from '../../core/config';
import type { Context } from '../../core/context';
import { Problem } from '../../core/errors';
import type { SecretBox } from '../../core/secrets';
import type { Session } from '../../db/control_database';
import { makeRowsDue, tearDownRows } from '../../db/loop_rows';
import { named } from '../../db/statement';
import type { CreateDatabaseInput, PreviewDatabase } from '../../schema/types';
import type { Application } from '../applications/application';
import { settingsOf } from '../applications/application_settings';
import { endCharge } from '../base/metering';
import { sealedColumns } from '../base/sealed_columns';
import type { PreviewCopies } from '../deployments/preview_databases';
import { ManagedDatabase } from './database';
import { removeDatabaseDependents } from './database/dependents';
import { openPassword } from './database_user/password';
import { attachmentVariablesOf } from './database_attachment/variables';

/** What a step of the loop has. */
interface Parts {
  sql: Session;
  config: Config;
  secrets: SecretBox;
  facts(): Promise<HostFacts>;
}

interface PreviewKey {
  id: string;
  project_id: string;
  application_id: string;
}

const APPLICATION = named(`select to_jsonb(a) as application, p.default_region from applications a
  join projects p on p.id = a.project_id where a.id = $1 and a.deleted_at is null`);
const ORIGINALS = named(`select d.id, d.name, d.engine, d.engine_version, d.database_package, d.storage_gb, d.region,
    d.database_name, (select b.id from database_backups b where b.database_id = d.id and b.status = 'completed'
      and b.deleted_at is null order by b.id desc limit 1) as backup_id
  from database_attachments a join databases d on d.id = a.database_id and d.deleted_at is null
  where a.application_id = $1 and a.deleted_at is null and d.id = any($2) order by d.id`);
const COPIES =
  named(`select c.id, c.preview_of, c.status, c.status_reason, c.unmasked_columns, c.mask is not null as masked,
    (select b.finished_at from database_backups b where b.id = c.restore_from ->> 'backup_id') as taken_at
  from databases c where c.preview_id = $1 and c.deleted_at is null`);
const LOGINS = named(`select a.env_prefix, d.id, d.engine, d.database_name, e.access, e.host, e.port, u.id as user_id,
    u.username, u.password
  from databases d join database_attachments a on a.database_id = d.preview_of and a.application_id = $2
    and a.deleted_at is null
  join database_endpoints e on e.database_id = d.id and e.is_default and e.deleted_at is null
  join database_users u on u.database_id = d.id and u.is_default
  where d.preview_id = $1 and d.deleted_at is null`);
const READY = named(`update previews set copies = $2::jsonb, database_variables = $3
  where id = $1 and deleted_at is null and copies ->> 'state' = 'waiting'`);

interface Original {
  id: string;
  name: string;
  engine: string;
  engine_version: string;
  database_package: string;
  storage_gb: number;
  region: string;
  database_name: string | null;
  backup_id: string | null;
}

interface Copy {
  id: string;
  preview_of: string;
  status: string;
  status_reason: string | null;
  unmasked_columns: string[];
  masked: boolean;
  taken_at: string | null;
}

/** Makes what is missing, and looks at what is there. @returns what became of all of them */
export async function prepareCopies(parts: Parts, preview: PreviewKey): Promise<PreviewCopies['state']> {
  const { sql } = parts;
  const [found] = await sql.query<{ application: Application; default_region: string }>(APPLICATION, [
    preview.application_id,
  ]);
  const wanted = found ? settingsOf(found.application).previews.databases.filter(({ mode }) => mode !== 'share') : [];
  const ids = wanted.map(({ database_id }) => database_id);
  const originals = await sql.query<Original>(ORIGINALS, [preview.application_id, ids]);
  const present = await sql.query<Copy>(COPIES, [preview.id]);
  for (const original of originals) {
    if (present.some(({ preview_of }) => preview_of === original.id)) continue;
    const setting = wanted.find(({ database_id }) => database_id === original.id) as PreviewDatabase;
    const failure = await makeCopy(parts, preview, { original, setting, region: found?.default_region ?? '' });
    if (failure !== null) return end(parts, preview, { state: 'failed', reason: failure });
  }
  const copies = await sql.query<Copy>(COPIES, [preview.id]);
  const nameOf = (copy: Copy): string => originals.find(({ id }) => id === copy.preview_of)?.name ?? copy.id;
  const failed = copies.find(({ status }) => status === 'failed');
  if (failed) {
    const reason = `The database ${nameOf(failed)} of the preview could not be made. ${failed.status_reason ?? ''}`;
    // A new attempt begins with a new one.
    await removeDatabases(sql, [failed.id]);
    return end(parts, preview, { state: 'failed', reason: reason.trim() });
  }
  if (copies.some(({ status }) => status !== 'available')) return 'waiting';
  const notes = copies.flatMap((copy) => notesOf(copy, nameOf(copy)));
  return end(parts, preview, { state: 'ready', notes });
}

/** Takes the databases of a preview away, for good. */
export async function removeCopies(sql: Session, previewId: string): Promise<void> {
  const copies = await sql.query<Copy>(COPIES, [previewId]);
  await removeDatabases(
    sql,
    copies.map(({ id }) => id),
  );
}

async function removeDatabases(sql: Session, ids: readonly string[]): Promise<void> {
  for (const id of ids)
    await sql.transaction(async (session) => {
      await removeDatabaseDependents(session, id);
      for (const table of ['database_endpoints', 'database_replicas'])
        await tearDownRows(session, { table, where: 'database_id = $1', values: [id] });
      await tearDownRows(session, { table: ManagedDatabase.table, where: 'id = $1', values: [id] });
      await endCharge(session, id);
    });
}

/** @returns why not, as a sentence; null: it is made */
async function makeCopy(
  { sql, config, secrets, facts }: Parts,
  { id: preview_id, project_id }: PreviewKey,
  { original, setting, region }: { original: Original; setting: PreviewDatabase; region: string },
): Promise<string | null> {
  const { mode, mask } = setting;
  if (mode !== 'empty' && original.backup_id === null)
    return `The database ${original.name} has no completed backup that a preview could copy. Take one, then deploy.`;
  const input: CreateDatabaseInput = {
    name: `${original.name.slice(0, 40)}-${preview_id.slice(-8)}`,
    ...{ engine: original.engine, engine_version: original.engine_version, region: original.region },
    ...{ database_package: original.database_package, storage_gb: original.storage_gb },
    backup_schedule: { enabled: false },
    ...(mode === 'empty'
      ? { ...(original.database_name !== null && { database_name: original.database_name }) }
      : { engine_version: undefined, copy_of: { backup_id: original.backup_id as string } }),
    ...(mode === 'masked' && { mask }),
  };
  try {
    await sql.transaction(async (session) => {
      // Of a request there is no more in it than what a database is made with.
      const ctx = {
        ...{ sql: session, config, secrets, catalogs: { facts }, activity: {}, identity: null },
        project: { id: project_id, default_region: region },
      } as unknown as Context;
      const made = await ManagedDatabase.create(ctx, input);
      await made.update(ctx, { preview_id, preview_of: original.id });
    });
    return null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return `The database ${original.name} of the preview could not be made. ${error.message}`;
  }
}

async function end(
  { sql, config, secrets }: Parts,
  preview: PreviewKey,
  copies: PreviewCopies,
): Promise<PreviewCopies['state']> {
  const rows = await sql.query<{
    env_prefix: string;
    id: string;
    engine: string;
    database_name: string | null;
    access: 'private' | 'public';
    host: string | null;
    port: number;
    user_id: string;
    username: string;
    password: string;
  }>(LOGINS, [preview.id, preview.application_id]);
  const variables = Object.assign(
    {},
    ...rows.map((row) => {
      const password = openPassword(secrets, { id: row.user_id, password: row.password });
      return attachmentVariablesOf(config, row.env_prefix, row, row, { username: row.username, password });
    }),
  ) as Record<string, string>;
  const sealed = secrets.seal(JSON.stringify(variables), sealedColumns.previewVariables.contextOf(preview.id));
  await sql.query(READY, [preview.id, JSON.stringify(copies), sealed]);
  const where = `preview_id = $1 and status = 'queued'`;
  await makeRowsDue(sql, { table: 'deployments', where, values: [preview.id] });
  return copies.state;
}

function notesOf({ masked, taken_at, unmasked_columns }: Copy, name: string): NonNullable<PreviewCopies['notes']> {
  const what =
    taken_at === null
      ? 'is empty'
      : `is a ${masked ? 'masked copy' : 'copy'} of its backup of ${new Date(taken_at).toISOString()}`;
  const columns = unmasked_columns.join(', ');
  const warning =
    `The database ${name} has columns that look personal and have no rule in \`previews.databases\`: ${columns}. ` +
    'Add rules for those that hold values of persons.';
  return [
    { level: 'info', text: `The database ${name} of this preview ${what}.` },
    ...(masked && unmasked_columns.length ? [{ level: 'warning' as const, text: warning }] : []),
  ];
}
