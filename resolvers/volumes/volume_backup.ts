import { loadOne } from '../../models/base/load';
import { Volume } from '../../models/volumes/volume';
import { VolumeBackup } from '../../models/volumes/volume_backup';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listVolumeBackups: (_, args, ctx) => VolumeBackup.list(ctx, args),
    getVolumeBackup: (_, { id, backup_id }, ctx) => VolumeBackup.ofVolume(ctx, id, backup_id),
    downloadVolumeBackup: async (_, { id, backup_id }, ctx) =>
      (await VolumeBackup.ofVolume(ctx, id, backup_id)).download(ctx),
  },
  Mutation: {
    createVolumeBackup: async (_, { id, input }, ctx) => VolumeBackup.create(ctx, await Volume.held(ctx, id), input),
    deleteVolumeBackup: async (_, { id, backup_id }, ctx) => {
      const volume = await Volume.held(ctx, id);
      await (await VolumeBackup.forUpdate(ctx, backup_id, { volume_id: id })).destroy(ctx, volume);
      return true;
    },
    restoreVolumeBackup: async (_, { id, backup_id, input }, ctx) => {
      const volume = await Volume.held(ctx, id);
      return (await VolumeBackup.get(ctx, backup_id, { volume_id: id })).restore(ctx, volume, input);
    },
  },
  VolumeBackup: {
    volume: (backup, _, ctx, info) => loadOne(Volume, ctx, backup.project_id, backup.volume_id, info),
  },
};
