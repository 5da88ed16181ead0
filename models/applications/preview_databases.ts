// What previews have of the databases that are attached to their application, as its settings say.
import type { Context } from '../../core/context';
import { problem, validationFailed } from '../../core/errors';
import type { PreviewDatabase, PreviewDatabaseInput } from '../../schema/types';
import { requireMask } from '../base/database_mask';
import { named } from '../../db/statement';

const ATTACHED = named(`select d.id, d.engine, d.on_cluster from database_attachments a
  join databases d on d.id = a.database_id where a.application_id = $1 and a.deleted_at is null`);

/**
 * The setting as it is kept; null: it is not changed.
 * @throws reference_not_found for a database that is not attached, validation_failed, engine_feature_unsupported
 */
export async function previewDatabases(
  ctx: Context,
  applicationId: string,
  sent: readonly PreviewDatabaseInput[] | null,
): Promise<PreviewDatabase[] | null> {
  if (sent === null) return null;
  const attached = await ctx.sql.query<{ id: string; engine: string; on_cluster: boolean }>(ATTACHED, [applicationId]);
  return sent.map(({ database_id, mode, mask }, index) => {
    const path = `previews.databases.${index}`;
    const database = attached.find(({ id }) => id === database_id);
    if (!database)
      throw problem('reference_not_found', `${path}.database_id names no database that is attached.`, {
        field: `${path}.database_id`,
      });
    if (mode === 'masked')
      return { database_id, mode, mask: requireMask(database, requireRules(mask, path), `${path}.mask`) };
    if (mask?.length)
      throw validationFailed([{ field: `${path}.mask`, code: 'depends_on', detail: 'is for the mode masked alone' }]);
    return { database_id, mode, mask: null };
  });
}

function requireRules(mask: PreviewDatabaseInput['mask'], path: string): NonNullable<PreviewDatabaseInput['mask']> {
  if (mask?.length) return mask;
  throw validationFailed([{ field: `${path}.mask`, code: 'required', detail: 'is needed by the mode masked' }]);
}
