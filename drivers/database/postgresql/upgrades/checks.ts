// Checks hold when a row is written, not for ever: a function may have changed since, or the time that `now()` answers.
// So checks of tables and domains are set aside while the rows are loaded, and then are what they were.
import type { Cluster } from '../cluster';
import { inSession, type Session } from '../session';
import { asLoader } from './loader';

/** `adding`: statements that make a check anew, with its comment. It is empty for one that a parent has. */
interface Check {
  relation: string;
  domain: string;
  name: string;
  valid: boolean;
  parents: number;
  dropping: string;
  adding: string;
}

const checksQuery = `
select c.conrelid::text as relation, c.contypid::text as domain, c.conname as name, c.convalidated as valid,
    c.coninhcount as parents, pg_catalog.format('alter %s drop constraint %I', o.what, c.conname) as dropping,
    case when c.conislocal then pg_catalog.format(
      'alter %s add constraint %I %s%s; comment on constraint %I on %s is %L', o.what, c.conname,
      d.definition, case when d.definition ~ 'NOT (VALID|ENFORCED)$' then '' else ' not valid' end,
      c.conname, o.named, pg_catalog.obj_description(c.oid, 'pg_constraint')) else '' end as adding
  from pg_catalog.pg_constraint c
    join pg_catalog.pg_namespace n on n.oid = c.connamespace
    left join pg_catalog.pg_class r on r.oid = c.conrelid
    left join pg_catalog.pg_type t on t.oid = c.contypid,
    lateral (select pg_catalog.format('%s %I.%I', case when r.oid is null then 'domain' else 'table' end, n.nspname,
      coalesce(r.relname, t.typname)) as what, pg_catalog.format('%s %I.%I', case when r.oid is null then 'domain'
      else '' end, n.nspname, coalesce(r.relname, t.typname)) as named) o,
    lateral (select pg_catalog.pg_get_constraintdef(c.oid) as definition) d
  where c.contype = 'c' and c.oid >= 16384 and not exists (select from pg_catalog.pg_depend e
    where e.deptype = 'e' and e.classid in ('pg_class'::regclass, 'pg_type'::regclass)
      and e.objid in (c.conrelid, c.contypid))
  order by c.coninhcount desc, c.oid`;

/** Drops all checks, and returns how to have them again. */
export function dropChecks(staging: Cluster, database: string): Promise<Check[]> {
  return asLoader(staging, database, async (session) => {
    const all = await checksOf(session);
    let left = all;
    // Dropping one of a parent drops those of its children, except those that they have themselves.
    while (left.some(({ parents }) => parents === 0)) {
      for (const { parents, dropping } of left) if (parents === 0) await session.query(dropping);
      left = await checksOf(session);
    }
    // Those of a parent that belongs to an extension stay.
    const staying = new Set(left.map(({ dropping }) => dropping));
    return all.filter(({ dropping }) => !staying.has(dropping));
  });
}

/** Makes the checks again, for rows to come, and as valid as they were. */
export async function recreateChecks(staging: Cluster, database: string, checks: Check[]): Promise<void> {
  await asLoader(staging, database, async (session) => {
    for (const { adding } of checks) if (adding !== '') await session.query(adding);
  });
  const valid = checks.filter((check) => check.valid);
  // No statement makes a check valid without reading the rows; nothing of the tenant's runs here.
  await inSession(staging, { data: staging.serverDirectory.data, database }, (session) =>
    session.query(
      `update pg_constraint c set convalidated = true
        from unnest($1::oid[], $2::oid[], $3::name[]) as v (relation, domain, name)
        where c.contype = 'c' and c.conrelid = v.relation and c.contypid = v.domain and c.conname = v.name`,
      [valid.map(({ relation }) => relation), valid.map(({ domain }) => domain), valid.map(({ name }) => name)],
    ),
  );
}

async function checksOf(session: Session): Promise<Check[]> {
  return (await session.query<Check>(checksQuery)).rows;
}
