// Opens the file store: a folder of the installation in a bucket of the operator.
import { rm } from 'node:fs/promises';
import type { Config } from '../../core/config';
import { DriverError, EngineAway } from '../../core/driver';
import type { BackupStore } from '../backup_store';
import { bucketOptions } from '../backup_store/open';
import { probeBackupStore } from '../backup_store/probe';
import { s3BackupStore } from '../backup_store/s3';
import type { FileStore } from '../file_store';

export type FileStoreSettings = Pick<
  Config,
  'fileStore' | 'fileStoreUrl' | 'fileStoreRegion' | 'fileStoreAccessKey' | 'fileStoreSecretKey'
>;

/**
 * @param installation its id, which is the name of its folder: several may share a bucket, and each sweeps its own
 * @returns null where files stay on this machine @throws StartupError where a key is missing
 */
export function openFileStore(config: FileStoreSettings, installation: () => Promise<string>): FileStore | null {
  if (config.fileStore === null) return null;
  const options = bucketOptions('FILE_STORE', {
    ...{ location: config.fileStore, url: config.fileStoreUrl, region: config.fileStoreRegion },
    ...{ accessKey: config.fileStoreAccessKey, secretKey: config.fileStoreSecretKey },
  });
  const { prefix } = options;
  const storeIn = (folder: string): BackupStore => s3BackupStore({ ...options, prefix: folder, title: 'file store' });
  let own: BackupStore | null = null;
  const store = async (): Promise<BackupStore> => (own ??= storeIn(`${prefix}${await installation()}/`));
  return {
    address: storeIn(prefix).address,
    put: (name, file, ctx) =>
      asAway(async () => {
        const digest = await (await store()).upload(name, file, ctx);
        // Some services answer 200 and do not have the object.
        if (await (await store()).has(name, ctx)) return digest;
        throw new EngineAway('The file store does not have a file that it has accepted.');
      }),
    fetch: (name, file, ctx) =>
      asAway(async () => {
        try {
          return await (await store()).download(name, file, ctx);
        } catch (error) {
          await rm(file, { force: true });
          if (isMissing(error)) return null;
          throw error;
        }
      }),
    async *list(folder, ctx) {
      try {
        yield* (await store()).list(folder, ctx);
      } catch (error) {
        throw toAway(error);
      }
    },
    remove: (name, ctx) => asAway(async () => (await store()).remove(name, ctx)),
    removeUnfinished: (folder, before, ctx) =>
      asAway(async () => void (await (await store()).removeUnfinished(folder, before, ctx))),
    probe: (ctx) => asAway(() => probeBackupStore(storeIn(prefix), ctx)),
  };
}

/** The address of the file store of these settings; null: none is set. */
export function fileStoreAddress({ fileStore: location }: Pick<Config, 'fileStore'>): string | null {
  return location && `s3://${location.bucket}/${location.prefix}`.replace(/\/$/, '');
}

function isMissing(error: unknown): boolean {
  return error instanceof DriverError && error.reason === 'conflict';
}

async function asAway<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw toAway(error);
  }
}

/** All files need the store alike: what it refuses to one is no fault of that one. */
function toAway(error: unknown): unknown {
  if (!(error instanceof DriverError) || error.engineAway) return error;
  return Object.assign(new EngineAway(error.message), { cause: error });
}
