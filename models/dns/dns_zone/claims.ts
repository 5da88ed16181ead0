// Which of several claims of a name is served. A DNS query carries the name but not the path of the delegation: all
// zones share the same name servers, so a server cannot derive the project from a query. Only the parent zone
// identifies the project, by the label in the names of the name servers that it lists. Until it does, a name that
// several projects claim is not served (docs/decisions/0157-claims-are-answered-by-proof.md).
import type { Context, Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { changeRows, NEW_VERSION, wakeRows } from '../../../db/loop_rows';
import { named } from '../../../db/statement';
import { wakeRecordOwners } from '../dns_record/owners';
import type { DelegationFindings } from './delegation';

/** What of a zone decides whether it is answered. */
export interface Claim {
  id: string;
  project_id: string;
  name: string;
  status: string;
  name_servers: string[];
  observed_name_servers: string[] | null;
}

/** Why a zone is not answered. */
export type Refusal = 'delegated_above' | 'contested' | 'delegated_to_another';

export const REFUSAL_REASONS: Record<Refusal, string> = {
  delegated_above: 'A zone above this one is delegated to another project.',
  contested:
    'Another project has a zone of this name, or of a name above or below it. The zone is answered once the parent ' +
    'zone delegates to its name servers.',
  delegated_to_another:
    'The parent zone delegates to name servers of this platform that belong to another zone, so this one is not ' +
    'answered. Set its own name servers at your registrar.',
};

// `o` is any other zone. A range over names read backwards finds those below a name by index.
const IS_ABOVE = 'lower(o.name) = any($2)';
const IS_BELOW = 'reverse(lower(o.name)) > $3 and reverse(lower(o.name)) < $4';
const IS_RELATED = `(${IS_ABOVE} or (${IS_BELOW}))`;

/** $2 to $4 of the terms above. @param isWithSelf whether $2 has the name itself */
function relationsOf(name: string, isWithSelf: 'with self' | 'above'): [string[], string, string] {
  const labels = name.split('.');
  const names = labels.map((_, index) => labels.slice(index).join('.'));
  const backwards = [...name].reverse().join('');
  // "/" follows "." in ASCII.
  return [isWithSelf === 'with self' ? names : names.slice(1), `${backwards}.`, `${backwards}/`];
}

const ACTIVE_ABOVE = named(`select o.project_id = $1 as own from dns_zones o
  where o.deleted_at is null and o.status = 'active' and ${IS_ABOVE} order by own limit 1`);
const CLAIMED = named(
  `select 1 from dns_zones o where o.deleted_at is null and o.project_id <> $1 and ${IS_RELATED} limit 1`,
);

/**
 * Why a zone is not served; null where it is. A zone that is not active is served while it is the only claim and the
 * parent zone does not delegate here with the label of another zone: only its owner queries it, to test it.
 * @param dnsDomain the common parent domain of the name servers of all zones
 */
export async function claimRefusalOf(sql: Sql, zone: Claim, dnsDomain: string): Promise<Refusal | null> {
  const [names] = relationsOf(zone.name, 'above');
  const [above] = await sql.query<{ own: boolean }>(ACTIVE_ABOVE, [zone.project_id, names]);
  if (above && !above.own) return 'delegated_above';
  if (zone.status === 'active' || above) return null;
  if (await isClaimedElsewhere(sql, zone)) return 'contested';
  const others = (zone.observed_name_servers ?? []).filter((server) => !zone.name_servers.includes(server));
  return others.some((server) => server.endsWith(`.${dnsDomain}`)) ? 'delegated_to_another' : null;
}

/** Which claims of a name, of names above it and of names below it are answered may have changed. */
export async function wakeClaims(sql: Sql, zone: { id: string; name: string }): Promise<void> {
  const where = `deleted_at is null and id <> $1 and ${IS_RELATED.replaceAll('o.', '')}`;
  await wakeRows(sql, { table: 'dns_zones', where, values: [zone.id, ...relationsOf(zone.name, 'with self')] });
}

const OWN = named('select 1 from dns_zones where project_id = $1 and name = $2 and deleted_at is null');
// Only a delegated zone blocks others: the delegation proves control of the domain.
const DELEGATED = named(`select 1 from dns_zones o
  where o.deleted_at is null and o.project_id <> $1 and o.status = 'active' and ${IS_RELATED} limit 1`);

/** @throws domain_taken for a zone of this name in the project, or one delegated to another at, above or below it */
export async function requireUnclaimed(ctx: Context, name: string): Promise<void> {
  const own = await ctx.sql.query(OWN, [ctx.project?.id, name]);
  if (own.length) throw problem('domain_taken', `The project already has the zone ${name}.`);
  await requireUndelegated(ctx, name);
}

/** @throws domain_taken for a zone that is delegated to another project, at, above or below the name */
export async function requireUndelegated(ctx: Context, name: string): Promise<void> {
  const taken = await ctx.sql.query(DELEGATED, [ctx.project?.id, ...relationsOf(name, 'with self')]);
  if (taken.length) throw problem('domain_taken', `${name} is delegated to another project.`, { field: 'name' });
}

/** Whether another project has a zone at, above or below the name of the zone. */
export async function isClaimedElsewhere(sql: Sql, zone: Pick<Claim, 'project_id' | 'name'>): Promise<boolean> {
  return (await sql.query(CLAIMED, [zone.project_id, ...relationsOf(zone.name, 'with self')])).length > 0;
}

const PARENT = named(`select 1 from dns_zones where deleted_at is null and project_id = $1 and lower(name) = $2
  and name_servers && $3 limit 1`);

/**
 * Evaluates the delegation in the parent zone. Where the zone above is served here, the lookup would query our own name
 * server: there, the result is that of the zone above, by its label.
 */
export async function resolveFindings(
  sql: Sql,
  zone: Pick<Claim, 'project_id' | 'name_servers'>,
  findings: DelegationFindings,
): Promise<DelegationFindings> {
  const { own_parent: parent } = findings;
  if (!parent) return findings;
  const held = await sql.query(PARENT, [zone.project_id, parent.zone, parent.name_servers]);
  return { ...findings, name_servers: held.length ? [...zone.name_servers].sort() : [] };
}

const ACTIVE_OTHERS = named(`select id, project_id, name from dns_zones o
  where deleted_at is null and project_id <> $1 and status = 'active' and ${IS_RELATED}
    and not (lower(name) = $5 and name_servers && $6)`);

/**
 * Deactivates zones of other projects at, above or below the name of a zone that the parent zone has delegated. A zone
 * of the same name whose name servers are listed too stays active.
 * @param observed name servers that the parent lists
 */
export async function supersedeClaims(sql: Sql, zone: Claim, observed: readonly string[]): Promise<void> {
  const values = [zone.project_id, ...relationsOf(zone.name, 'with self'), zone.name, observed];
  const others = await sql.query<{ id: string; project_id: string; name: string }>(ACTIVE_OTHERS, values);
  if (!others.length) return;
  const set = `status = 'moved', elsewhere_since = null, observed_generation = observed_generation + 1, ${NEW_VERSION}`;
  const where = `id = any($1) and status = 'active'`;
  await changeRows(sql, { table: 'dns_zones', where, values: [others.map(({ id }) => id)], set });
  for (const other of others) await wakeRecordOwners(sql, other);
}

const OTHER_ACTIVE = named(
  `select 1 from dns_zones where lower(name) = $1 and id <> $2 and status = 'active' and deleted_at is null`,
);

/** Whether the parent zone lists another claim of the same name too, which was active before. */
export async function isActiveElsewhere(sql: Sql, { id, name }: { id: string; name: string }): Promise<boolean> {
  return (await sql.query(OTHER_ACTIVE, [name, id])).length > 0;
}
