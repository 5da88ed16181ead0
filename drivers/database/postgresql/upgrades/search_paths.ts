// Functions that name what they use without its schema. A dump is loaded with an empty search path, and since version
// 17 indexes are built with one (PostgreSQL, release notes of 17): such a function in an index, a generated column, a
// check or a partition key then fails. It gets the search path of its owner, as those release notes ask for.
import type { Cluster } from '../cluster';
import { inSession, sqlIdentifier, sqlString, type Session } from '../session';

/**
 * Search paths by the identity of the function, as pg_identify_object writes it; some versions write `pg_catalog.`
 * before the names of certain types.
 */
export type SearchPaths = Map<string, string>;

const pinning = 'platform_pin_search_path';

/** Functions that the load calls and that have no search path of their own. */
export async function searchPathsOf(old: Cluster, database: string): Promise<SearchPaths> {
  return inSession(old, { database }, async (session) => {
    const { rows } = await session.query<{ identity: string; owner: string; path: string }>(
      `select replace(i.identity, 'pg_catalog.', '') as identity, r.rolname as owner, coalesce((
          select substr(setting, strpos(setting, '=') + 1) from pg_db_role_setting s, unnest(s.setconfig) setting
            where setting like 'search_path=%' and s.setrole in (0, p.proowner)
              and s.setdatabase in (0, (select oid from pg_database where datname = current_database()))
            order by s.setrole <> 0 desc, s.setdatabase <> 0 desc limit 1), '"$user", public') as path
        from pg_proc p join pg_roles r on r.oid = p.proowner,
          pg_identify_object('pg_proc'::regclass, p.oid, 0) i
        where p.oid >= 16384 and p.prokind = 'f'
          and not exists (select from unnest(p.proconfig) setting where setting like 'search_path=%')
          and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
            and d.deptype = 'e')
          and exists (select from pg_depend d where d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
            and (d.classid = any(array['pg_class', 'pg_constraint', 'pg_type', 'pg_statistic_ext', 'pg_operator',
                'pg_cast', 'pg_proc', 'pg_amproc']::regclass[])
              or d.classid = 'pg_attrdef'::regclass and exists (select from pg_attrdef f join pg_attribute a
                on a.attrelid = f.adrelid and a.attnum = f.adnum where f.oid = d.objid and a.attgenerated <> '')
              or d.classid = 'pg_rewrite'::regclass and exists (select from pg_rewrite w join pg_class c
                on c.oid = w.ev_class where w.oid = d.objid and c.relkind = 'm')))`,
    );
    const paths: SearchPaths = new Map();
    for (const { identity, owner, path } of rows) {
      const resolved = await resolvedFor(session, owner, path);
      if (resolved !== null) paths.set(identity, resolved);
    }
    return paths;
  });
}

/** Gives the functions their search paths as soon as the loader creates them, in sessions to come. */
export async function pinSearchPaths(staging: Cluster, database: string, paths: SearchPaths): Promise<void> {
  const body = `declare made record; path text;
begin
  for made in select object_identity from pg_event_trigger_ddl_commands() where classid = 'pg_proc'::regclass loop
    path := ${sqlString(JSON.stringify(Object.fromEntries(paths)))}::jsonb
      ->> replace(made.object_identity, 'pg_catalog.', '');
    if path is not null then
      execute format('alter function %s set search_path to %s', made.object_identity, path);
    end if;
  end loop;
end`;
  await inSession(staging, { data: staging.serverDirectory.data, database }, async (session) => {
    await session.query(
      `create function pg_catalog.${pinning}() returns event_trigger language plpgsql set search_path to pg_catalog
        as ${sqlString(body)}`,
    );
    await session.query(
      `create event trigger ${pinning} on ddl_command_end when tag in ('CREATE FUNCTION')
        execute function pg_catalog.${pinning}()`,
    );
  });
}

/** Removes the event trigger of `pinSearchPaths`. */
export async function dropSearchPathTrigger(staging: Cluster, database: string): Promise<void> {
  await inSession(staging, { data: staging.serverDirectory.data, database }, async (session) => {
    await session.query(`drop event trigger if exists ${pinning}`);
    await session.query(`drop function if exists pg_catalog.${pinning}()`);
  });
}

// The schemas that exist, as the server resolves them for the owner: "$user" is another one for the loader.
async function resolvedFor(session: Session, owner: string, path: string): Promise<string | null> {
  await session.query('begin');
  try {
    await session.query("select set_config('search_path', $1, true)", [path]);
    await session.query(`set local role ${sqlIdentifier(owner)}`);
    const { rows } = await session.query<{ path: string | null }>(
      `select pg_catalog.string_agg(pg_catalog.quote_ident(schema), ', ') as path
        from pg_catalog.unnest(pg_catalog.current_schemas(false)) as schema`,
    );
    return rows[0]?.path ?? null;
  } finally {
    await session.query('rollback');
  }
}
