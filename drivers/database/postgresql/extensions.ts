// Extensions that owners want: created by the administrator, because most of them need a superuser. Their scripts run
// as one, so nothing that the tenant has made may stand in for what they call (PostgreSQL, "Security Considerations for
// Extensions").
import type { ExtensionFound } from '../../../core/catalog/host_facts';
import { DriverError } from '../../../core/driver';
import { toSentence } from '../../../core/sentence';
import type { ExtensionChange, ExtensionResult } from '../../database';
import { roles } from './cluster';
import { isUnavailable, sqlIdentifier, type Session } from './session';

const DEPENDENT_OBJECTS_STILL_EXIST = '2BP01';
const LOCK_NOT_AVAILABLE = '55P03';
/** Scripts find what they call in these first, unless another function fits its arguments better. */
const SHADOWS = `with made as (
    select 'pg_proc'::regclass as class, oid, 'function ' || proname as name from pg_proc p
      where pronamespace = to_regnamespace('public')
        and exists (select from pg_proc o where o.proname = p.proname and o.pronamespace = 'pg_catalog'::regnamespace)
    union all select 'pg_operator'::regclass, oid, 'operator ' || oprname from pg_operator p
      where oprnamespace = to_regnamespace('public')
        and exists (select from pg_operator o where o.oprname = p.oprname
          and o.oprnamespace = 'pg_catalog'::regnamespace))
  select name from made where not exists (select from pg_depend d
    where d.classid = made.class and d.objid = made.oid and d.deptype = 'e') order by name limit 1`;

/** $1, $2, $3: the roles of owners, readers and writers. */
const GRANTS = `with member as (
    select relname as name, relkind = 'S' as is_sequence, nspname as schema from pg_depend d
      join pg_class c on c.oid = d.objid join pg_namespace n on n.oid = c.relnamespace
      where d.classid = 'pg_class'::regclass and d.deptype = 'e' and relkind in ('r', 'p', 'v', 'm', 'S')
        and nspname <> 'pg_catalog' and not pg_has_role($1::text, c.relowner, 'usage'))
  select format('grant usage on schema %I to %I, %I, %I', schema, $1::text, $2::text, $3::text) as statement
    from (select distinct schema from member) as places
  union all select format('grant %s on %s %I.%I to %I', right_to.what,
      case when is_sequence then 'sequence' else 'table' end, schema, name, right_to.role)
    from member, lateral (values
      ($1::text, case when is_sequence then 'usage, select, update' else 'select, insert, update, delete' end),
      ($2, 'select'), ($3, 'select')) as right_to (role, what)`;

/** Before version 13 there are no trusted ones. */
const AVAILABLE = `select e.name, v.version, coalesce(v.comment, '') as description,
    coalesce(v.requires::text[], '{}') as requires,
    coalesce((to_jsonb(v) ->> 'trusted')::boolean, false) as is_trusted
  from pg_available_extensions e
    join pg_available_extension_versions v on v.name = e.name and v.version = e.default_version order by e.name`;

/** For a statement. That of PostGIS for addresses takes half a minute on a small machine. */
export const EXTENSION_MS = 5 * 60_000;
/** Scripts such as that of postgis_topology add a schema to the path that sessions of the tenant begin with. */
export const EXTENSION_SETTINGS = ['search_path="$user",public'];

/** What the control files of the server say, sorted by name. */
export async function availableExtensions(session: Session): Promise<ExtensionFound[]> {
  const { rows } = await session.query<ExtensionFound>(AVAILABLE);
  return rows;
}

/** Brings each of them into the database that the session is in, or out of it. @throws DriverError transient */
export async function changeExtensions(
  session: Session,
  changes: readonly ExtensionChange[],
): Promise<ExtensionResult[]> {
  const results: ExtensionResult[] = [];
  await session.query('set search_path = pg_catalog');
  for (const change of changes) results.push(await changeOne(session, change));
  return results;
}

async function changeOne(session: Session, { name, isWanted }: ExtensionChange): Promise<ExtensionResult> {
  try {
    await (isWanted ? create(session, name) : session.query(`drop extension if exists ${sqlIdentifier(name)}`));
    return { version: await versionOf(session, name) };
  } catch (error) {
    await session.query('rollback').catch(() => undefined);
    if (error instanceof DriverError && error.reason === 'invalid') return { failure: error.message };
    return { failure: failureOf(name, error) };
  }
}

async function create(session: Session, name: string): Promise<void> {
  if ((await versionOf(session, name)) !== null) return;
  const { rows } = await session.query<{ name: string }>(SHADOWS);
  if (rows[0])
    throw new DriverError(
      'invalid',
      `The schema public has the ${rows[0].name}, which has the name of one of PostgreSQL. Rename it, and enable ` +
        `${name} again.`,
    );
  await session.query('begin');
  await session.query('set local search_path = public');
  await session.query(`create extension ${sqlIdentifier(name)} cascade`);
  await grantMembers(session);
  await session.query('commit');
}

/** What extensions have made belongs to the administrator: users get the rights that they have to tables. */
async function grantMembers(session: Session): Promise<void> {
  const { owner, readers, writers } = roles;
  const { rows } = await session.query<{ statement: string }>(GRANTS, [owner, readers, writers]);
  for (const { statement } of rows) await session.query(statement);
}

async function versionOf(session: Session, name: string): Promise<string | null> {
  const { rows } = await session.query<{ extversion: string }>(
    'select extversion from pg_extension where extname = $1',
    [name],
  );
  return rows[0]?.extversion ?? null;
}

function firstLines(detail = ''): string {
  return detail.split('\n').slice(0, 5).join('; ');
}

/** What the server says of a change that it refuses. @throws the error where it is to be tried again */
function failureOf(name: string, error: unknown): string {
  const { code, detail, message } = error as { code?: string; detail?: string; message: string };
  if (isUnavailable(error) || code === undefined) throw error;
  if (code === LOCK_NOT_AVAILABLE) throw new DriverError('transient', `Another session keeps ${name} busy.`);
  if (code === DEPENDENT_OBJECTS_STILL_EXIST)
    return `The extension stays, because other objects depend on it: ${firstLines(detail)}.`;
  return toSentence(`The server refuses: ${message}`);
}
