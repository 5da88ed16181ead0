// What a process type starts: its own command, else what the Procfile or the builder of its deployment says.
import DataLoader from 'dataloader';
import type { Context } from '../../../core/context';
import { named } from '../../../db/statement';

const COMMANDS = named(`select p.id, d.plan -> 'processes' ->> p.type as command from processes p
  join releases r on r.id = p.release_id join deployments d on d.id = r.deployment_id where p.id = any($1)`);

/** Null before the first deployment, where none was set. */
export async function startCommand(
  ctx: Context,
  process: { id: string; command: string | null },
): Promise<string | null> {
  const known = ctx.loaders.get(startCommand) as DataLoader<string, string | null> | undefined;
  const loader = known ?? new DataLoader((ids) => load(ctx, ids), { maxBatchSize: 500, cache: false });
  ctx.loaders.set(startCommand, loader);
  // Loaded also where it is not needed, so that the number of queries does not depend on the number of rows.
  const planned = await loader.load(process.id);
  return process.command ?? planned;
}

async function load(ctx: Context, ids: readonly string[]): Promise<(string | null)[]> {
  const rows = await ctx.sql.query<{ id: string; command: string | null }>(COMMANDS, [ids]);
  const found = new Map(rows.map(({ id, command }) => [id, command]));
  return ids.map((id) => found.get(id) ?? null);
}
