import type { LiveReader } from '../contract/live';
import { Activity } from '../models/activity';
import { activityAfter } from '../models/activity_tail';
import { Project } from '../models/project';
import { reachableProjects } from '../models/reachable_projects';
import { projectUsage } from '../models/usage';
import type { QueryListProjectActivityArgs, Resolvers } from '../schema/types';

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
