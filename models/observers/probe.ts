// Probes: programs elsewhere that check observers from a region of their own, each with a key. Only the hash of a key
// is kept.
import type { Sql } from '../../core/context';
import { mintId } from '../../core/ids';
import { mintProbeToken } from '../../core/accounts/tokens';
import { named } from '../../db/statement';

export interface Probe {
  id: string;
  region: string;
  name: string;
  /** The first characters of its key. */
  prefix: string;
  /** Kinds of checks that it can make; null before it was heard of. */
  checks: string[] | null;
  created_at: string;
  /** When it last asked for checks. */
  seen_at: string | null;
}

const COLUMNS = 'id, region, name, prefix, checks, created_at, seen_at';
const INSERT = named(`insert into probes (id, region, name, prefix, key_hash)
  values ($1, $2, $3, $4, decode($5, 'hex')) returning ${COLUMNS}`);
const LIST = named(`select ${COLUMNS} from probes where revoked_at is null order by region, id`);
const REVOKE = named('update probes set revoked_at = now() where id = $1 and revoked_at is null returning region');
const FIND = named(`select ${COLUMNS} from probes where key_hash = decode($1, 'hex') and revoked_at is null`);

/** A new probe with its key, which is shown this once. @param region a slug, not that of the installation */
export async function createProbe(
  sql: Sql,
  { region, name }: { region: string; name: string },
): Promise<{ probe: Probe; token: string }> {
  const { token, prefix, hash } = mintProbeToken();
  const [probe] = await sql.query<Probe>(INSERT, [mintId('prb'), region, name, prefix, hash]);
  if (!probe) throw new Error('the probe was not stored');
  return { probe, token };
}

/** Those whose keys are not revoked. */
export function listProbes(sql: Sql): Promise<Probe[]> {
  return sql.query<Probe>(LIST, []);
}

/** Its key is refused from now on, and what it holds is free when its leases end. False: there is no such probe. */
export async function revokeProbe(sql: Sql, id: string): Promise<boolean> {
  return (await sql.query(REVOKE, [id])).length > 0;
}

/** The probe of a key, by the hash of it. Asked for every request, so that a revoked key ends at once. */
export async function findProbe(sql: Sql, hash: string): Promise<Probe | null> {
  const [probe] = await sql.query<Probe>(FIND, [hash]);
  return probe ?? null;
}

const SEEN = named(
  `update probes set seen_at = now(), checks = $2, suspended = $3 where id = $1 and revoked_at is null`,
);

/** Notes that a probe asks for checks, and what it says of itself. */
export async function noteProbe(
  sql: Sql,
  { id }: Probe,
  { kinds, suspended }: { kinds: readonly string[]; suspended: boolean },
): Promise<void> {
  await sql.query(SEEN, [id, kinds, suspended]);
}
