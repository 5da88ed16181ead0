import { fieldsBack, type Revert } from '../../contract/revert';
import { batchOf, type LiveReader } from '../../contract/live';
import type { Combination } from '../../contract/subscriptions';
import { resourceNames } from '../../models/base/resource_name';
import { Activity, obstacleOf } from '../../models/projects/activity';
import { activityAfter } from '../../models/projects/activity_tail';
import { Project } from '../../models/projects/project';
import { reachableProjects } from '../../models/projects/reachable_projects';
import { projectUsage } from '../../models/projects/usage';
import type { QueryListProjectActivityArgs } from '../../schema/types';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listProjects: (_, args, ctx) => reachableProjects(ctx, args),
    getProject: (_, __, ctx) => Project.selected(ctx),
    getProjectUsage: (_, __, ctx) => projectUsage(ctx),
    listProjectActivity: (_, args, ctx) => Activity.list(ctx, args),
  },
  Mutation: {
    createProject: (_, { input }, ctx) => Project.create(ctx, input),
    updateProject: async (_, { input }, ctx) => (await Project.selectedForUpdate(ctx)).change(ctx, input),
    deleteProject: async (_, __, ctx) => {
      await (await Project.selectedForUpdate(ctx)).destroy(ctx);
      return true;
    },
  },
  Project: {
    deleted_retention_days: (_, __, ctx) => ctx.config.retentionOfDeletedDays,
    names: (project, { ids }, ctx) => resourceNames(ctx, project.id, ids),
  },
};

/** A row of the stream, as the type shows it. */
function shownEntry(row: Parameters<typeof obstacleOf>[0]): object {
  const revert_obstacle = obstacleOf(row);
  return { ...row, revertible: revert_obstacle === null, revert_obstacle };
}

export const live: Record<string, LiveReader> = {
  listProjectActivity: {
    topics: ({ id }) => [{ channel: 'activity', key: String(id) }],
    read: async (args, ctx, after) =>
      batchOf(await activityAfter(ctx, args as unknown as QueryListProjectActivityArgs, after), shownEntry),
  },
};

export const combined: Record<string, Combination> = {
  followProject: {
    description: [
      'Follows the activity of a project and the log lines of one of its applications in one stream: the newest rows',
      'of both, then each one as it comes. It needs the scopes `read` and `logs:read`. Sent over server-sent events.',
    ].join(' '),
    event: 'ProjectEvent',
    project: 'id',
    argumentDescriptions: {
      id: 'Id of the project.',
      application_id: 'Id of the application whose log lines are sent.',
      action: 'Returns only activity entries with this action.',
      actor_id: 'Returns only activity entries of this user or key.',
      resource_type: 'Returns only activity entries about resources of this type.',
      resource_id: 'Returns only activity entries about this resource.',
      since: 'Returns only rows written at or after this time.',
    },
    parts: [
      { list: 'listProjectActivity', time: 'created_at', renamed: {} },
      { list: 'listApplicationLogs', time: 'timestamp', renamed: { id: 'application_id' } },
    ],
  },
};

export const revert: Record<string, Revert> = {
  updateProject: fieldsBack(),
};
