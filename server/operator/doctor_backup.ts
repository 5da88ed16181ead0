// Whether the installation is backed up, and whether the last backup was proven.
import type { Config } from '../../core/config';
import { readBackupJournal, type BackupJournal } from '../platform/backup_journal';
import type { Finding } from './finding';

const HOUR_MS = 3_600_000;
/** A backup takes its time, and the next look comes every ten minutes. */
const LATE_HOURS = 2;

export async function installationBackup(config: Config): Promise<Finding[]> {
  const check = 'backup';
  if (config.resticRepository === null)
    return [{ check, status: 'warning', detail: 'none: set RESTIC_REPOSITORY to a repository on another machine' }];
  const journal = await readBackupJournal(config);
  if (journal === null)
    return [
      { check, status: 'warning', detail: 'none yet: `platform backup` makes one, and the service in 10 minutes' },
    ];
  return [lastOne(journal, config.backupEveryHours), ...proofOf(journal)];
}

function lastOne({ last_whole_at, error, repository }: BackupJournal, everyHours: number): Finding {
  const check = 'backup';
  const last = last_whole_at === null ? 'there is none' : `the last one is of ${last_whole_at}`;
  if (error !== null) return { check, status: 'failed', detail: `the last attempt failed: ${error}; ${last}` };
  const isLate = last_whole_at === null || Date.now() - Date.parse(last_whole_at) > (everyHours + LATE_HOURS) * HOUR_MS;
  return { check, status: isLate ? 'failed' : 'ok', detail: `${last}, in ${repository}` };
}

function proofOf({ proof }: BackupJournal): Finding[] {
  const check = 'proof of the backup';
  if (proof === null) return [{ check, status: 'warning', detail: 'none yet: `platform backup prove`' }];
  const { at, seconds, error } = proof;
  if (error !== null) return [{ check, status: 'failed', detail: `the backup is not usable (${at}): ${error}` }];
  return [{ check, status: 'ok', detail: `restored aside and compared at ${at}, in ${seconds} s` }];
}
