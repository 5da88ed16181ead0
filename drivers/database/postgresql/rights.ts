// Rights that nobody but the platform has. A server from before upgrades were loaded by a role of their own may have
// users who took some (docs/decisions/0205).
import { roles } from './cluster';
import type { Session } from './session';

/** Takes the rights of a superuser, and memberships of the server's own roles, from all roles but the platform's. */
export async function revokeHigherRights(session: Session): Promise<void> {
  const { rows } = await session.query<{ revoking: string }>(
    `select format('alter role %I nosuperuser nocreaterole nobypassrls %s', rolname,
        case when rolname = $2 then '' else 'noreplication' end) as revoking
      from pg_roles where rolname <> $1
        and (rolsuper or rolcreaterole or rolbypassrls or rolreplication and rolname <> $2)
      union all select format('revoke %I from %I', g.rolname, u.rolname)
      from pg_auth_members m join pg_roles g on g.oid = m.roleid join pg_roles u on u.oid = m.member
      where (g.rolname ~ '^pg_' or g.rolname = $1) and u.rolname <> all($3) and u.rolname !~ '^pg_'`,
    [roles.admin, roles.replication, [roles.admin, roles.owner]],
  );
  for (const { revoking } of rows) await session.query(revoking);
}

/** Event triggers run in sessions of the platform, with its rights; only a superuser can have made one. */
export async function dropEventTriggers(session: Session): Promise<void> {
  const { rows } = await session.query<{ dropping: string }>(
    `select format('drop event trigger %I', evtname) as dropping from pg_event_trigger e
      where not exists (select from pg_depend where classid = 'pg_event_trigger'::regclass and objid = e.oid
        and deptype = 'e')`,
  );
  for (const { dropping } of rows) await session.query(dropping);
}
