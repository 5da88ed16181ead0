import { fieldsBack, type Revert } from '../../contract/revert';
import { Volume } from '../../models/volumes/volume';
import { page } from '../../models/base/page';
import { loadOne } from '../../models/base/load';
import { Application } from '../../models/applications/application';
import { volumeSizeLimits } from '../../models/reference/catalog';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listVolumes: (_, args, ctx) => page(Volume, ctx, args),
    getVolume: (_, { id }, ctx) => Volume.get(ctx, id),
    listVolumeSizeLimits: (_, args, ctx) => volumeSizeLimits(ctx, args),
  },
  Mutation: {
    createVolume: (_, { input }, ctx) => Volume.create(ctx, input),
    updateVolume: async (_, { id, input }, ctx) => (await Volume.forUpdate(ctx, id)).change(ctx, input),
    deleteVolume: async (_, { id }, ctx) => {
      await (await Volume.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Volume: {
    application: (volume, _, ctx, info) => loadOne(Application, ctx, volume.project_id, volume.application_id, info),
  },
};

export const revert: Record<string, Revert> = {
  updateVolume: fieldsBack({ growing: ['size_gb'] }),
};
