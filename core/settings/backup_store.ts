// Settings of the bucket for backups of databases and volumes.
import { httpUrlSetting, s3Location, slug, text } from '../setting_types';

export const backupStoreSettings = {
  BACKUP_STORE: s3Location({
    default: null,
    description:
      'Bucket, and folder in it, that keeps the backups of databases and volumes: s3://bucket/folder. Not set: they ' +
      'stay in the data directory.',
  }),
  BACKUP_STORE_URL: httpUrlSetting({
    default: null,
    derived: 'Amazon S3 in BACKUP_STORE_REGION',
    description: 'Address of the S3 service that has the bucket, such as https://s3.example.com.',
  }),
  BACKUP_STORE_REGION: slug({
    default: 'us-east-1',
    description: 'Region in the signatures. Most services other than Amazon S3 take any.',
  }),
  BACKUP_STORE_ACCESS_KEY: text({
    default: null,
    description: 'Access key that may list, read, write and delete objects of the bucket.',
  }),
  BACKUP_STORE_SECRET_KEY: text({ default: null, secret: true, description: 'Secret of that key.' }),
};
