import type { Context } from '../../core/context';
import type { NestedOperation } from '../../contract/nested';
import { problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import { autoDeployState } from '../../models/deployments/auto_deploy';
import { Activity, obstacleOf } from '../../models/projects/activity';
import { readUndo, requireUnchanged, takeUndo, type StateReader } from '../../models/projects/activity/revert';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Mutation: {
    // Bound to the operations that it runs by `nested` below.
    revertActivity: () => {
      throw problem('internal_error');
    },
  },
  Activity: {
    revertible: (entry) => obstacleOf(entry) === null,
    revert_obstacle: (entry) => obstacleOf(entry),
  },
};

/** What is no row of a kind by itself. */
const READERS: Readonly<Record<string, StateReader>> = { auto_deploy: autoDeployState };

export const nested: Record<string, NestedOperation> = {
  revertActivity: {
    prepare: async ({ id }, ctx, calls) => calls.prepare(ctx, (await readUndo(ctx, id as string)).calls),
    async resolve({ id }, ctx, calls) {
      const by = mintId(Activity.idPrefix);
      const { entry, undo } = await takeUndo(ctx, id as string, by);
      await requireUnchanged(ctx, undo, READERS);
      const back = await calls.run(ctx, undo.calls, ctx.probed as unknown[]);
      noteRevert(ctx, entry, by);
      ctx.activity.undo = back;
      return entry;
    },
  },
};

function noteRevert(ctx: Context, entry: Activity, by: string): void {
  const { resource, changed_fields, project_id } = entry;
  Object.assign(ctx.activity, { id: by, reverts: entry.id, changed_fields, resource: { ...resource, project_id } });
}
