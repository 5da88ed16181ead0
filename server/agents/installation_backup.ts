// Makes the backups of the installation when they are due, each in a process of its own.
import { spawn } from 'node:child_process';
import type { Config } from '../../core/config';
import { repeatWork, type RepeatedWork } from '../../core/process/background';
import type { Logger } from '../../core/log/log';
import { isBackupDue, readBackupJournal, STARTED_BY_SERVICE } from '../platform/backup_journal';
import { readSuccessor } from '../platform/installation_owner';
import { needsNewPoint } from '../platform/wal_state';

/** In the register of background work. */
export const BACKUP_WORK = 'installation_backup';
const DUE_CHECK_EVERY_MS = 10 * 60_000;
const SAID_CHARACTERS = 4_000;

/** @returns null where RESTIC_REPOSITORY is not set */
export function startInstallationBackup(config: Config, log: Logger): Pick<RepeatedWork, 'stop'> | null {
  if (config.resticRepository === null) return null;
  const stopping = new AbortController();
  const work = repeatWork(
    { name: BACKUP_WORK, everyMs: DUE_CHECK_EVERY_MS, log, failure: 'the installation could not be backed up' },
    async () => {
      const journal = await readBackupJournal(config);
      if (readSuccessor(config) !== null) return;
      if (!isBackupDue(journal, config.backupEveryHours, Date.now(), needsNewPoint(config))) return;
      await runBackup(stopping.signal);
      log.info('the installation was backed up, and the backup was proven');
    },
  );
  // A service that is restarted often would never come to it.
  work.runNow();
  return {
    async stop() {
      stopping.abort();
      await work.stop();
    },
  };
}

/** The command `platform backup`. @throws Error with its last line */
function runBackup(signal: AbortSignal): Promise<void> {
  const fileOfSettings = process.execArgv.filter((argument) => argument.startsWith('--env-file'));
  const words = [...fileOfSettings, require.resolve('../operator/main'), 'backup'];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, words, {
      signal,
      env: { ...process.env, [STARTED_BY_SERVICE]: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
      killSignal: 'SIGTERM',
    });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-SAID_CHARACTERS)));
    child.on('error', (error) => (signal.aborted ? resolve() : reject(error)));
    child.on('close', (code) => {
      const reason = said
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^platform: /, '');
      if (code === 0 || signal.aborted) resolve();
      else reject(new Error(reason || `platform backup ended with code ${code}`));
    });
  });
}
