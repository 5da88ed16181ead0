import { createdBack, deletedBack, fieldsBack, type Revert } from '../../contract/revert';
import { Application } from '../../models/applications/application';
import { childrenOf } from '../../models/applications/application/children';
import { loadOne } from '../../models/base/load';
import { Schedule } from '../../models/runs/schedule';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listSchedules: (_, args, ctx) => Schedule.list(ctx, args),
    getSchedule: (_, { id, schedule_id }, ctx) => Schedule.ofApplication(ctx, id, schedule_id),
  },
  Mutation: {
    createSchedule: (_, { id, input }, ctx) => Schedule.create(ctx, id, input),
    updateSchedule: async (_, { id, schedule_id, input }, ctx) =>
      (await Schedule.toChange(ctx, id, schedule_id)).change(ctx, input),
    deleteSchedule: async (_, { id, schedule_id }, ctx) => {
      await (await Schedule.toChange(ctx, id, schedule_id)).remove(ctx);
      return true;
    },
    triggerSchedule: (_, { id, schedule_id }, ctx) => Schedule.trigger(ctx, id, schedule_id),
  },
  Application: {
    schedules: (application, { limit }, ctx) => childrenOf(Schedule, ctx, application, limit),
  },
  Schedule: {
    application: (schedule, _, ctx, info) =>
      loadOne(Application, ctx, schedule.project_id, schedule.application_id, info),
  },
};

const CHILD = {
  kind: 'schedule',
  parent: 'application',
  create: 'createSchedule',
  delete: 'deleteSchedule',
  id: 'schedule_id',
} as const;

export const revert: Record<string, Revert> = {
  createSchedule: createdBack(CHILD),
  updateSchedule: fieldsBack({ id: 'schedule_id', parents: { id: 'application' } }),
  deleteSchedule: deletedBack(CHILD),
};
