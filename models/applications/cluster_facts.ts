// What the cluster that runs applications can do, which the worker writes (server/agents/workloads/cluster_facts.ts),
// and by what it knows this installation.
import { randomUUID } from 'node:crypto';
import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';

const SAVE = named(`insert into cluster_facts (name, value) values ('measures', to_jsonb($1::boolean))
  on conflict (name) do update set value = excluded.value, updated_at = now()
    where cluster_facts.value <> excluded.value`);
const UNMEASURED = named(`select 1 from cluster_facts where name = 'measures' and value = 'false'`);

const INSTALLATION = named(`insert into cluster_facts (name, value) values ('installation', to_jsonb($1::text))
  on conflict (name) do update set value = cluster_facts.value returning value #>> '{}' as id`);

/**
 * Reads the id by which a cluster and the file store tell this installation from others, once. It is made at its first
 * use, and stays with the database, also in its backups.
 */
export function installationId(sql: Sql): () => Promise<string> {
  let known: string | undefined;
  return async () => {
    known ??= (await sql.query<{ id: string }>(INSTALLATION, [randomUUID()]))[0]?.id;
    if (known === undefined) throw new Error('the id of the installation was not returned');
    return known;
  };
}

const SAVE_PREFIX = named(`insert into cluster_facts (name, value) values ('prefix', to_jsonb($1::text))
  on conflict (name) do update set value = excluded.value, updated_at = now()`);

/** Label of the objects of this installation in the cluster, by which ingresses recognise their pods. */
export async function saveClusterPrefix(sql: Sql, prefix: string): Promise<void> {
  await sql.query(SAVE_PREFIX, [prefix]);
}

const CLOCK = named('select clock_timestamp()::text as now');
const CONFIRM = named(`insert into cluster_facts (name, value, updated_at)
  values ('pods', 'true', $1::timestamptz - $2::float8 * interval '1 millisecond')
  on conflict (name) do update set updated_at = excluded.updated_at`);
const CONFIRMED = named(`select (extract(epoch from clock_timestamp() - updated_at) * 1000)::float8 as age_ms
  from cluster_facts where name = 'pods'`);

/** The rows of instances were the pods of the cluster at this moment of the monotonic clock. */
export async function confirmPodRows(sql: Sql, provenAt: number): Promise<void> {
  // Of the clock of the database, asked for first: a write that waits makes no proof newer.
  const [clock] = await sql.query<{ now: string }>(CLOCK, []);
  if (clock) await sql.query(CONFIRM, [clock.now, performance.now() - provenAt]);
}

/** How long ago they were last; null: there is no cluster. */
export async function podRowsConfirmedMsAgo(sql: Sql): Promise<number | null> {
  return (await sql.query<{ age_ms: number }>(CONFIRMED, []))[0]?.age_ms ?? null;
}

/** Whether the cluster measures CPU and memory of pods. */
export async function saveClusterMeasures(sql: Sql, measures: boolean): Promise<void> {
  await sql.query(SAVE, [measures]);
}

/**
 * @param what as the subject of a sentence, `CPU and memory`
 * @throws engine_unavailable where applications run on a cluster without a metrics server
 */
export async function requireClusterMeasures(ctx: Pick<Context, 'sql' | 'config'>, what: string): Promise<void> {
  if (ctx.config.workloads !== 'kubernetes' || (await ctx.sql.query(UNMEASURED, [])).length === 0) return;
  throw problem(
    'engine_unavailable',
    `${what} cannot be measured: the cluster that runs applications has no metrics server (metrics.k8s.io). ` +
      'The operator has to install one.',
  );
}
