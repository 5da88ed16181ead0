// Probes: remote programs that check observers from a separate region, each authenticated by a key. Only the hash of a
// key is stored.
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
  /** Time of the last request for checks. */
  seen_at: string | null;
}

const COLUMNS = 'id, region, name, prefix, checks, created_at, seen_at';
const INSERT = named(`insert into probes (id, region, name, prefix, key_hash)
  values ($1, $2, $3, $4, decode($5, 'hex')) returning ${COLUMNS}`);
const LIST = named(`select ${COLUMNS} from probes where revoked_at is null order by region, id`);
const REVOKE = named('update probes set revoked_at = now() where id = $1 and revoked_at is null returning region');
const FIND = named(`select ${COLUMNS} from probes where key_hash = decode($1, 'hex') and revoked_at is null`);

/** Creates a probe with a key, which is shown only once. @param region a slug, not that of the installation */
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

/** Revokes the key at once; the probe's checks are free when their leases end. False: there is no such probe. */
export async function revokeProbe(sql: Sql, id: string): Promise<boolean> {
  return (await sql.query(REVOKE, [id])).length > 0;
}

/** Finds a probe by the hash of its key. Queried on every request, so that revocation takes effect at once. */
export async function findProbe(sql: Sql, hash: string): Promise<Probe | null> {
  const [probe] = await sql.query<Probe>(FIND, [hash]);
  return probe ?? null;
}

const SEEN = named(
  `update probes set seen_at = now(), checks = $2, suspended = $3 where id = $1 and revoked_at is null`,
);

/** Records a request for checks, with the kinds and state that the probe reports. */
export async function noteProbe(
  sql: Sql,
  { id }: Probe,
  { kinds, suspended }: { kinds: readonly string[]; suspended: boolean },
): Promise<void> {
  await sql.query(SEEN, [id, kinds, suspended]);
}
