// Whether the installation is backed up, and whether the last backup was proven.
import type { Config } from '../../core/config';
import { readBackupJournal, type BackupJournal } from '../platform/backup_journal';
import { readWalPush, readWalStart } from '../platform/wal_state';
import { readSuccessor, takenOverText } from '../platform/installation_owner';
import type { Finding } from './finding';

const HOUR_MS = 3_600_000;
/** A backup takes its time, and the next look comes every ten minutes. */
const LATE_HOURS = 2;

export async function installationBackup(config: Config): Promise<Finding[]> {
  const check = 'backup';
  if (config.resticRepository === null)
    return [{ check, status: 'warning', detail: 'none: set RESTIC_REPOSITORY to a repository on another machine' }];
  const successor = readSuccessor(config);
  if (successor !== null) return [{ check, status: 'failed', detail: takenOverText(successor) }];
  const journal = await readBackupJournal(config);
  if (journal === null)
    return [
      { check, status: 'warning', detail: 'none yet: `platform backup` makes one, and the service in 10 minutes' },
    ];
  return [lastOne(journal, config.backupEveryHours), ...logOf(config), ...proofOf(journal)];
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

/** Pushes come each half minute; a whole backup of a large repository may be in between. */
const PUSHED_WITHIN_MS = 10 * 60_000;

function logOf(config: Config): Finding[] {
  const check = 'write-ahead log';
  if (config.databaseUrl !== null)
    return [{ check, status: 'ok', detail: 'of DATABASE_URL: its own backups lead to a moment, these do not' }];
  const [start, push] = [readWalStart(config), readWalPush(config)];
  if (start === null || push === null)
    return [{ check, status: 'warning', detail: 'begins with the next backup: what is written now is not covered' }];
  const isLate = Date.now() - Date.parse(push.checked_at) > PUSHED_WITHIN_MS;
  const late = isLate ? ', and nothing of after: see background work' : '';
  const detail = `in the repository up to ${push.checked_at}${late}`;
  return [{ check, status: isLate ? 'failed' : 'ok', detail }];
}
