import type { LiveReader } from '../../contract/live';
import { Activity } from '../../models/projects/activity';
import { activityAfter } from '../../models/projects/activity_tail';
import { Project } from '../../models/projects/project';
import { reachableProjects } from '../../models/projects/reachable_projects';
import { projectUsage } from '../../models/projects/usage';
import type { QueryListProjectActivityArgs, Resolvers } from '../../schema/types';

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
};

export const live: Record<string, LiveReader> = {
  listProjectActivity: {
    topic: ({ id }) => ({ channel: 'activity', key: String(id) }),
    read: (args, ctx, after) => activityAfter(ctx, args as unknown as QueryListProjectActivityArgs, after),
  },
};
