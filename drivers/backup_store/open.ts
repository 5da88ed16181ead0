// Opens the backup store of this installation.
import type { Config } from '../../core/config';
import { StartupError } from '../../core/startup_error';
import type { BackupStore } from '../backup_store';
import { s3BackupStore } from './s3';

type Settings = Pick<
  Config,
  'backupStore' | 'backupStoreUrl' | 'backupStoreRegion' | 'backupStoreAccessKey' | 'backupStoreSecretKey'
>;

/** @returns null where backups are kept on the host @throws StartupError where a key is missing */
export function openBackupStore(config: Settings): BackupStore | null {
  const { backupStore, backupStoreUrl, backupStoreRegion: region } = config;
  const { backupStoreAccessKey: accessKeyId, backupStoreSecretKey: secretAccessKey } = config;
  if (backupStore === null) return null;
  if (accessKeyId === null || secretAccessKey === null)
    throw new StartupError(
      'BACKUP_STORE is set, and BACKUP_STORE_ACCESS_KEY or BACKUP_STORE_SECRET_KEY is not; set both',
    );
  const url = backupStoreUrl ?? `https://s3.${region}.amazonaws.com`;
  return s3BackupStore({ ...backupStore, url, region, accessKeyId, secretAccessKey });
}
