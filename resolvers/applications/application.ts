import { fieldsBack, type Revert } from '../../contract/revert';
import { Application } from '../../models/applications/application';
import { childrenOf } from '../../models/applications/application/children';
import { visitorUrl } from '../../models/applications/application/url';
import { Deployment } from '../../models/deployments/deployment';
import { newestDeployments } from '../../models/deployments/deployment/newest';
import { certificateOf } from '../../models/base/default_certificate';
import { Domain } from '../../models/domains/domain';
import { EnvironmentVariable } from '../../models/environment/environment_variable';
import { metricsBeside } from '../../models/applications/metric_point/application';
import { loadOne } from '../../models/base/load';
import { page } from '../../models/base/page';
import { Volume } from '../../models/volumes/volume';
import { probeRepository } from '../../models/applications/application/repository';
import type { CreateApplicationInput, UpdateApplicationInput } from '../../schema/types';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listApplications: (_, args, ctx) => page(Application, ctx, args),
    getApplication: (_, { id }, ctx) => Application.get(ctx, id),
  },
  Mutation: {
    createApplication: (_, { input }, ctx) => Application.create(ctx, input),
    updateApplication: async (_, { id, input }, ctx) => (await Application.forUpdate(ctx, id)).change(ctx, input),
    deleteApplication: async (_, { id }, ctx) => {
      await (await Application.toDestroy(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Application: {
    volumes: (application, { limit }, ctx) => childrenOf(Volume, ctx, application, limit),
    domains: (application, { limit }, ctx) => childrenOf(Domain, ctx, application, limit),
    environment_variables: (application, { limit }, ctx) => childrenOf(EnvironmentVariable, ctx, application, limit),
    url: (application, _, ctx) => visitorUrl(ctx, application),
    certificate: (application, _, ctx) => certificateOf(ctx, application.default_hostname),
    current_deployment: (application, _, ctx, info) =>
      loadOne(Deployment, ctx, application.project_id, application.current_deployment_id, info),
    latest_deployment: async (application, _, ctx) => (await newestDeployments(ctx, application, 1))[0] ?? null,
    metrics: (application, args, ctx) => metricsBeside(ctx, application, args),
    deployments: (application, { limit }, ctx) => newestDeployments(ctx, application, limit),
  },
  ApplicationSource: { template: ({ preset }) => preset ?? null },
};

export const prepare: Record<string, Prepare> = {
  createApplication: ({ input }, ctx) => probeRepository(ctx, (input as CreateApplicationInput).source),
  updateApplication: async ({ id, input }, ctx) => {
    const { source } = input as UpdateApplicationInput;
    if (source?.repository_id == null) return null;
    const application = await Application.get(ctx, id as string).catch(() => null);
    return probeRepository(ctx, source, application?.source);
  },
};

export const revert: Record<string, Revert> = {
  updateApplication: fieldsBack(),
};
