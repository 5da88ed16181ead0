// Settings of the backup of the whole installation. Credentials of the repository are variables of restic itself.
import { integer, path, text } from '../setting_types';

export const backupSettings = {
  RESTIC_REPOSITORY: text({
    default: null,
    description:
      'Repository of restic that keeps backups of the whole installation: a path on another disk, ' +
      's3:https://s3.example.com/bucket, sftp:user@host:/path or rest:https://host/. Not set: there are none.',
  }),
  RESTIC_PASSWORD_FILE: path({
    default: null,
    description:
      'File with the passphrase of that repository. Keep a copy elsewhere: nothing can be restored without it.',
  }),
  BACKUP_EVERY_HOURS: integer({
    default: '24',
    min: 1,
    max: 168,
    description: 'Hours between backups of the installation. RESTIC_REPOSITORY has to be set.',
  }),
  BACKUP_KEEP_DAYS: integer({
    default: '30',
    min: 1,
    max: 3650,
    description: 'Days for which backups of the installation are kept: all of the last two days, then one of each day.',
  }),
};
