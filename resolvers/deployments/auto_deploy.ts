import { changedFields, leavesOf, type Revert } from '../../contract/revert';
import { Application } from '../../models/applications/application';
import {
  autoDeployOf,
  changeAutoDeploy,
  probeHeadAtStart,
  type HeadAtStart,
} from '../../models/deployments/auto_deploy';
import type { UpdateAutoDeployInput } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    getAutoDeploy: async (_, { id }, ctx) => {
      const { document, etag } = await autoDeployOf(ctx, await Application.get(ctx, id));
      ctx.reply.etag = etag;
      return document;
    },
  },
  Mutation: {
    updateAutoDeploy: async (_, { id, input }, ctx) => {
      const { document, etag } = await changeAutoDeploy(
        ctx,
        await Application.forUpdate(ctx, id),
        input,
        ctx.probed as HeadAtStart | null,
      );
      ctx.reply.etag = etag;
      return document;
    },
  },
};

export const prepare: Record<string, Prepare> = {
  updateAutoDeploy: ({ id, input }, ctx) => probeHeadAtStart(ctx, id as string, input as UpdateAutoDeployInput),
};

export const revert: Record<string, Revert> = {
  updateAutoDeploy: ({ operation, args, changes, inputOf }) => {
    const change = changes.find(({ kind }) => kind === 'auto_deploy');
    const input = change ? changedFields(inputOf(operation), change.before ?? {}, change.after ?? {}) : {};
    if (!change?.after || !Object.keys(input).length) return 'unchanged';
    return {
      calls: [{ operation, args: { id: args.id, input } }],
      holds: [{ kind: 'application', id: args.id as string }],
      expected: [{ kind: change.kind, by: { id: change.id }, values: leavesOf(input, change.after) }],
    };
  },
};
