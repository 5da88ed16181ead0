// Which host names of the platform get certificates: its own ones by its settings, and default host names that were
// made before there was an authority.
import type { ControlDatabase } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { hasDefaultCertificates, type DefaultSettings } from '../../base/default_certificate';
import { removeDnsChallenge } from '../domain/records';

const INSERT_OWN = named(`insert into certificates (id) select desired.name from unnest($1::text[]) as desired (name)
  where not exists (select 1 from certificates where id = regexp_replace(desired.name, '^[^.]+', '*')
    and domain_id is not null)
  on conflict (id) do nothing returning id`);
const DELETE_OTHERS =
  named(`delete from certificates where id <> all($1) and domain_id is null and application_id is null
  and preview_id is null and cdn_zone_id is null returning id`);

/**
 * Orders certificates of host names of the platform itself, except those that custom domains have one for, and deletes
 * those of other names. `*.` is a wildcard.
 */
export async function ensureOwnCertificates(database: ControlDatabase, names: readonly string[]): Promise<void> {
  await database.transaction(async (sql) => {
    for (const { id } of await sql.query<{ id: string }>(DELETE_OTHERS, [[...names]]))
      await removeDnsChallenge(sql, id);
    if ((await sql.query(INSERT_OWN, [[...names]])).length) sql.due('certificates');
  });
}

const INSERT_DEFAULT = named(`insert into certificates (id, application_id, preview_id, cdn_zone_id)
  select default_hostname, id, null, null from applications where deleted_at is null
  union all select hostname, null, id, null from previews where deleted_at is null
  union all select hostname, null, null, id from cdn_zones where deleted_at is null
  on conflict (id) do nothing returning id`);

/** For those that were made before the installation had an authority. */
export async function ensureDefaultCertificates(database: ControlDatabase, config: DefaultSettings): Promise<void> {
  if (!hasDefaultCertificates(config)) return;
  await database.transaction(async (sql) => {
    if ((await sql.query(INSERT_DEFAULT, [])).length) sql.due('certificates');
  });
}
