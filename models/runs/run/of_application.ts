// Runs of applications without those of their previews.
import type { Context } from '../../../core/context';
import { columnsOf, tableOf } from '../../../db/table';
import type { Source } from '../../base/page';

/** Where a list of them reads. */
export function ownRuns(ctx: Context): Source {
  return {
    from: 'runs',
    where: 'project_id = :project_id and preview_id is null and deleted_at is null',
    columns: columnsOf(tableOf(ctx, 'runs')),
    values: { project_id: ctx.project?.id },
  };
}
