import { fieldsBack, type Revert } from '../../contract/revert';
import { page } from '../../models/base/page';
import { Registry } from '../../models/registries/registry';
import { RegistryImage } from '../../models/registries/registry_image';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listRegistries: (_, args, ctx) => page(Registry, ctx, args),
    getRegistry: (_, { id }, ctx) => Registry.get(ctx, id),
    listRegistryImages: async (_, { id, ...args }, ctx) => {
      await Registry.get(ctx, id);
      return page(RegistryImage, ctx, args, { registry_id: id });
    },
  },
  Mutation: {
    createRegistry: (_, { input }, ctx) => Registry.create(ctx, input),
    updateRegistry: async (_, { id, input }, ctx) => (await Registry.forUpdate(ctx, id)).change(ctx, input),
    deleteRegistry: async (_, { id }, ctx) => {
      await (await Registry.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  Registry: {
    host: (registry, _, ctx) => registry.hostAt(ctx),
  },
};

export const revert: Record<string, Revert> = {
  updateRegistry: fieldsBack(),
};
