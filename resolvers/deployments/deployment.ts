import type { Prepare } from '../index';
import { Application } from '../../models/applications/application';
import { Deployment } from '../../models/deployments/deployment';
import { pendingVariables } from '../../models/deployments/pending_variables';
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
    promoteApplication: (_, { id, input }, ctx) => Deployment.promote(ctx, id, input),
  },
  Application: {
    pending_variables: ({ id }, _, ctx) => pendingVariables(ctx, id),
  },
  Deployment: {
    steps: (deployment) => deployment.steps_with_ends,
    application: (deployment, _, ctx, info) =>
      loadOne(Application, ctx, deployment.project_id, deployment.application_id, info),
  },
};

export const prepare: Record<string, Prepare> = {
  createDeployment: ({ id, input }, ctx) => Deployment.ask(ctx, id as string, input as CreateDeploymentInput),
};
