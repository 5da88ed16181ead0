// The machine and the backups of the installation, as its operators see them in the dashboard.
import type { Config } from '../../core/config';
import type { InstallationBackups, InstallationControl } from '../../core/catalog/installation_control';
import { machineFacts } from '../../drivers/machine/facts';
import { dataDirectories } from '../agents/installation_disks';
import { readBackupJournal } from '../platform/backup_journal';

const HOUR_MS = 3_600_000;
const NO_REPOSITORY =
  'Nothing is backed up. Set RESTIC_REPOSITORY to a repository of restic on another machine and RESTIC_PASSWORD_FILE ' +
  'to a file with a passphrase that you keep elsewhere, too, and restart the service.';

export function machineOf(config: Config): Pick<InstallationControl, 'machine' | 'backups'> {
  return { machine: () => machineFacts(dataDirectories(config)), backups: () => backupsOf(config) };
}

async function backupsOf(config: Config): Promise<InstallationBackups> {
  const { resticRepository, backupEveryHours: every_hours } = config;
  const journal = await readBackupJournal(config);
  const proof = journal?.proof ?? null;
  return {
    repository: withoutPassword(resticRepository ?? journal?.repository ?? null),
    obstacle: resticRepository === null ? NO_REPOSITORY : null,
    every_hours,
    ...{ started_at: journal?.started_at ?? null, ended_at: journal?.ended_at ?? null, error: journal?.error ?? null },
    last_whole_at: journal?.last_whole_at ?? null,
    next_at: resticRepository === null ? null : nextAt(journal?.last_whole_at ?? null, every_hours),
    ...{ files: journal?.files ?? null, bytes: journal?.bytes ?? null, added_bytes: journal?.added_bytes ?? null },
    notes: journal?.notes ?? [],
    ...{ proven_at: proof?.at ?? null, proof_seconds: proof?.seconds ?? null, proof_error: proof?.error ?? null },
    points: (journal?.points ?? []).map(({ at, ...point }) => ({ ...point, made_at: at })),
  };
}

function nextAt(lastWholeAt: string | null, everyHours: number): string | null {
  return lastWholeAt === null ? null : new Date(Date.parse(lastWholeAt) + everyHours * HOUR_MS).toISOString();
}

/** `rest:https://user:password@example.com/` */
export function withoutPassword(repository: string | null): string | null {
  return repository?.replace(/(\/\/[^/@:]*):[^/@]*@/, '$1:***@') ?? null;
}
