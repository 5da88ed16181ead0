// What the cluster that runs applications can do. The worker writes it (server/agents/workloads/cluster_facts.ts).
import type { Context, Sql } from '../../core/context';
import { problem } from '../../core/errors';
import { named } from '../../db/statement';

const SAVE = named(`insert into cluster_facts (name, value) values ('measures', to_jsonb($1::boolean))
  on conflict (name) do update set value = excluded.value, updated_at = now()
    where cluster_facts.value <> excluded.value`);
const UNMEASURED = named(`select 1 from cluster_facts where name = 'measures' and value = 'false'`);

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
