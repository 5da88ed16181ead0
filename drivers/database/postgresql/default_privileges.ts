// What the users of the platform may do with tables that admins make later. `drop owned by` takes all of it away, and
// the tables made since then have none of it.
import { roles } from './cluster';
import { sqlIdentifier, type Session } from './session';

const [readers, writers] = [roles.readers, roles.writers].map(sqlIdentifier);

const rights = [
  `usage on schemas to ${readers}, ${writers}`,
  `select on tables to ${readers}`,
  `select on sequences to ${readers}`,
  `select, insert, update, delete, truncate on tables to ${writers}`,
  `usage, select, update on sequences to ${writers}`,
];

/** Puts them back where a maker of tables has none; a choice of its own among them is left as it is. */
export async function ensureDefaultPrivileges(session: Session, admins: readonly string[]): Promise<void> {
  const makers = [roles.owner, ...admins];
  const { rows } = await session.query<{ maker: string }>(
    `select r.rolname as maker from pg_default_acl d join pg_roles r on r.oid = d.defaclrole
      where d.defaclnamespace = 0 and r.rolname = any($1) and exists (
        select from aclexplode(d.defaclacl) a join pg_roles g on g.oid = a.grantee where g.rolname = any($2))`,
    [makers, [roles.readers, roles.writers]],
  );
  const done = new Set(rows.map(({ maker }) => maker));
  if (!done.has(roles.owner)) await openSchemas(session);
  for (const maker of makers) if (!done.has(maker)) await openTables(session, maker);
}

async function openSchemas(session: Session): Promise<void> {
  const { rowCount } = await session.query("select from pg_namespace where nspname = 'public'");
  if (rowCount === 0) return;
  await session.query('begin');
  await session.query(`alter schema public owner to ${sqlIdentifier(roles.owner)}`);
  await session.query('revoke create on schema public from public');
  await session.query(`grant usage on schema public to ${readers}, ${writers}`);
  await session.query('commit');
}

async function openTables(session: Session, maker: string): Promise<void> {
  await session.query('begin');
  for (const right of rights)
    await session.query(`alter default privileges for role ${sqlIdentifier(maker)} grant ${right}`);
  await session.query('commit');
  for (const statement of await missingGrants(session, maker)) await session.query(statement);
}

/** Grants on what the maker owns and no user of the platform was granted anything on. */
async function missingGrants(session: Session, maker: string): Promise<string[]> {
  const { rows } = await session.query<{ statement: string }>(
    `with groups as (select array[$2::regrole::oid, $3::regrole::oid] as oids), closed as (
        select 1 as rank, format('schema %I', nspname) as object, 'usage' as readers, 'usage' as writers
          from pg_namespace n, groups where nspowner = $1::regrole and nspname !~ '^pg_'
          and not exists (select from aclexplode(nspacl) where grantee = any(oids))
        union all select 2,
          format(case relkind when 'S' then 'sequence %I.%I' else 'table %I.%I' end, nspname, relname), 'select',
          case relkind when 'S' then 'usage, select, update' else 'select, insert, update, delete, truncate' end
          from pg_class c join pg_namespace n on n.oid = c.relnamespace, groups
          where relowner = $1::regrole and relkind in ('r', 'p', 'v', 'm', 'f', 'S') and nspname !~ '^pg_'
          and not exists (select from aclexplode(relacl) where grantee = any(oids)))
      select format('grant %s on %s to %I', granted.what, object, granted.role) as statement from closed,
        lateral (values (readers, $4::text), (writers, $5::text)) as granted (what, role) order by rank, object`,
    [sqlIdentifier(maker), readers, writers, roles.readers, roles.writers],
  );
  return rows.map(({ statement }) => statement);
}
