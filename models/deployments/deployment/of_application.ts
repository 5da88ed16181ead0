// Deployments of applications without those of their previews.
import type { Context } from '../../../core/context';
import { columnsOf, tableOf } from '../../../db/table';
import type { Source } from '../../base/page';

export const OWN = 'preview_id is null and deleted_at is null';

/** Where a list of them reads. */
export function ownDeployments(ctx: Context): Source {
  return {
    from: 'deployments',
    where: `project_id = :project_id and ${OWN}`,
    columns: columnsOf(tableOf(ctx, 'deployments')),
    values: { project_id: ctx.project?.id },
  };
}
