import { fieldsBack, type Revert } from '../../contract/revert';
import type { SourceResult } from '../../core/context';
import { hookUrl, openHook } from '../../models/integrations/git_integration/hook';
import { SharedRepository } from '../../models/integrations/shared_repository';
import { listSharedBranches } from '../../models/integrations/shared_repository/branches';
import { hostKeyFingerprint } from '../../models/integrations/shared_repository/deploy_key';
import { addShare, listShares, removeShare } from '../../models/integrations/shared_repository/shares';
import type { Resolvers } from '../types';
import type { Prepare } from '../index';

export const resolvers: Resolvers = {
  Query: {
    listSharedRepositories: (_, args, ctx) => SharedRepository.list(ctx, args),
    getSharedRepository: (_, { id }, ctx) => SharedRepository.visible(ctx, id),
    listSharedRepositoryBranches: (_, { id, ...args }, ctx) => listSharedBranches(ctx, id, args),
    listSharedRepositoryProjects: async (_, { id, ...args }, ctx) =>
      listShares(ctx, await SharedRepository.visible(ctx, id), args),
  },
  Mutation: {
    createSharedRepository: (_, { input }, ctx) => SharedRepository.create(ctx, input),
    updateSharedRepository: async (_, { id, input }, ctx) => (await SharedRepository.owned(ctx, id)).change(ctx, input),
    deleteSharedRepository: async (_, { id }, ctx) => {
      await (await SharedRepository.owned(ctx, id)).destroy(ctx);
      return true;
    },
    verifySharedRepository: async (_, { id }, ctx) =>
      (await SharedRepository.visibleForUpdate(ctx, id)).verify(ctx, ctx.probed as SourceResult | null),
    rotateSharedRepositoryDeployKey: async (_, { id }, ctx) => (await SharedRepository.owned(ctx, id)).rotateKey(ctx),
    addSharedRepositoryProject: async (_, { id, input }, ctx) =>
      addShare(ctx, await SharedRepository.owned(ctx, id), input.project_id),
    removeSharedRepositoryProject: async (_, { id, shared_project_id }, ctx) => {
      await removeShare(ctx, await SharedRepository.owned(ctx, id), shared_project_id);
      return true;
    },
  },
  SharedRepository: {
    access_level: ({ access_level }) => access_level ?? 'owner',
    deploy_key: ({ access, deploy_key }) => (access === 'deploy_key' ? deploy_key : null),
    host_key_fingerprint: ({ host_key }) => (host_key === null ? null : hostKeyFingerprint(host_key)),
    webhook_url: (repository, _, ctx) => hookUrl(ctx.config, openHook(ctx.secrets, repository)),
  },
};

export const prepare: Record<string, Prepare> = {
  verifySharedRepository: ({ id }, ctx) => SharedRepository.probe(ctx, id as string),
};

export const revert: Record<string, Revert> = {
  updateSharedRepository: fieldsBack(),
};
