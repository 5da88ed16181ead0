// Extensions that owners of a database want, in its running server.
import { PRELOADED } from '../../../core/catalog/postgresql_extensions';
import type { EngineDriver } from '../../../drivers/database';
import { recordExtension, wantedExtensions } from '../../../models/databases/database_extension/job_queries';
import type { JobContext } from '../../job';
import type { DatabaseRow } from './row';
import type { DesiredServer } from './spec';

/**
 * A server whose data were replaced may have others: it gets those that were enabled again. `restarts`: it has a
 * library that it need not load any more.
 */
export async function applyExtensions(
  row: DatabaseRow,
  desired: DesiredServer,
  engine: EngineDriver,
  ctx: JobContext,
): Promise<{ restarts: boolean }> {
  if (!engine.changeExtensions) return { restarts: false };
  const wanted = await wantedExtensions(ctx.sql, row.id, row.status !== 'available');
  if (!wanted.length) return { restarts: false };
  const changes = wanted.map(({ name, status }) => ({ name, isWanted: status !== 'disabling' }));
  const results = await engine.changeExtensions(desired, changes, ctx);
  for (const [index, extension] of wanted.entries())
    await recordExtension(ctx.sql, row.id, extension, results[index] as (typeof results)[number]);
  return { restarts: wanted.some(({ name, status }) => status === 'disabling' && PRELOADED.has(name)) };
}
