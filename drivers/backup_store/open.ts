// Opens the backup store of this installation.
import type { Config } from '../../core/config';
import type { S3LocationSetting } from '../../core/setting_types';
import { StartupError } from '../../core/startup_error';
import type { BackupStore } from '../backup_store';
import { s3BackupStore } from './s3';
import type { S3Options } from './s3_requests';

type Settings = Pick<
  Config,
  'backupStore' | 'backupStoreUrl' | 'backupStoreRegion' | 'backupStoreAccessKey' | 'backupStoreSecretKey'
>;

/** @returns null where backups are kept on the host @throws StartupError where a key is missing */
export function openBackupStore(config: Settings): BackupStore | null {
  if (config.backupStore === null) return null;
  return s3BackupStore(
    bucketOptions('BACKUP_STORE', {
      ...{ location: config.backupStore, url: config.backupStoreUrl, region: config.backupStoreRegion },
      ...{ accessKey: config.backupStoreAccessKey, secretKey: config.backupStoreSecretKey },
    }),
  );
}

interface BucketSettings {
  location: S3LocationSetting;
  url: string | null;
  region: string;
  accessKey: string | null;
  secretKey: string | null;
}

/** @param setting that names the bucket @throws StartupError where a key is missing */
export function bucketOptions(
  setting: string,
  { location, url, region, accessKey: accessKeyId, secretKey: secretAccessKey }: BucketSettings,
): S3Options & { prefix: string } {
  if (accessKeyId === null || secretAccessKey === null)
    throw new StartupError(`${setting} is set, and ${setting}_ACCESS_KEY or ${setting}_SECRET_KEY is not; set both`);
  return { ...location, url: url ?? `https://s3.${region}.amazonaws.com`, region, accessKeyId, secretAccessKey };
}
