import type { Prepare } from '../index';
import { Application } from '../../models/applications/application';
import { Deployment } from '../../models/deployments/deployment';
import type { ProbedSource } from '../../models/deployments/deployment/source_probe';
import { loadOne } from '../../models/base/load';
import type { CreateDeploymentInput } from '../../schema/types';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDeployments: (_, args, ctx) => Deployment.list(ctx, args),
    getDeployment: async (_, { id, deployment_id }, ctx) => {
      await Application.get(ctx, id);
      return Deployment.get(ctx, deployment_id, { application_id: id });
    },
  },
  Mutation: {
    createDeployment: (_, { id, input }, ctx) => Deployment.create(ctx, id, input, ctx.probed as ProbedSource | null),
    cancelDeployment: async (_, { id, deployment_id }, ctx) => {
      await Application.get(ctx, id);
      return (await Deployment.forUpdate(ctx, deployment_id, { application_id: id })).cancel(ctx);
    },
    rollbackApplication: (_, { id, input }, ctx) => Deployment.rollBack(ctx, id, input),
  },
  Deployment: {
    application: (deployment, _, ctx, info) =>
      loadOne(Application, ctx, deployment.project_id, deployment.application_id, info),
  },
};

export const prepare: Record<string, Prepare> = {
  createDeployment: ({ id, input }, ctx) => Deployment.ask(ctx, id as string, input as CreateDeploymentInput),
};
