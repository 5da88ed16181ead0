// volumes backup, backups, restore, download, schedule.
import { duration, integer, maybe, sessionCommand, text, toggle, tuple, word } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { downloadFile } from '../http/download';
import { formatAge, formatBytes, printOne, printRows, type Row } from '../output/print';
import { confirmByName } from '../output/terminal';
import type { Session } from '../session';
import { waitWhile } from '../settle';

type Find = (session: Session, given: string) => Promise<Row & { id: string; name: string }>;
type WaitFlags = { readonly wait?: boolean | undefined; readonly timeout?: number | undefined };

const WAIT = { wait: toggle('Wait until it is done'), timeout: duration('With --wait: no longer than this') };
const NAME = tuple(word('volume', 'Name or id of the volume'));
const RESTORING = ['provisioning', 'restoring'];
const COLUMNS = {
  BACKUP: 'id',
  TYPE: 'type',
  STATUS: 'status',
  FILES: 'consistency',
  SIZE: (row: Row) => formatBytes(row.size_bytes),
  CREATED: (row: Row) => formatAge(row.created_at),
  NOTE: 'note',
};
const SHOWN = { name: 'name', size: (row: Row) => `${row.size_gb} GB`, status: 'status', reason: 'status_reason' };

/** @param find the volume of a name or an id */
export const volumeBackupCommands = (find: Find) => ({
  backup: backupCommand(find),
  backups: backupsCommand(find),
  restore: restoreCommand(find),
  download: downloadCommand(find),
  schedule: scheduleCommand(find),
});

const backupCommand = (find: Find) =>
  sessionCommand<WaitFlags & { readonly note?: string | undefined }, [string]>({
    brief: 'Take a backup of the files of a volume',
    target: 'project',
    flags: { note: text('Note on why'), ...WAIT },
    args: NAME,
    async run(session, flags, given) {
      const path = `/v2/volumes/${(await find(session, given)).id}/backups`;
      let row = await session.request('POST', path, { body: flags.note ? { note: flags.note } : {} });
      if (flags.wait) row = await waitWhile(session, `${path}/${row.id}`, ['pending', 'running'], flags);
      printOne(row, flags, { backup: 'id', status: 'status', size: (one) => formatBytes(one.size_bytes) });
      if (row.status === 'failed') throw new Failure(String(row.status_reason ?? 'The backup failed.'));
    },
  });

const backupsCommand = (find: Find) =>
  sessionCommand<NonNullable<unknown>, [string]>({
    brief: 'List the backups of a volume',
    target: 'project',
    args: NAME,
    async run(session, flags, given) {
      const { id } = await find(session, given);
      printRows(await session.list(`/v2/volumes/${id}/backups`), COLUMNS, flags);
    },
  });

const restoreCommand = (find: Find) =>
  sessionCommand<WaitFlags & { readonly backup?: string | undefined; readonly as?: string | undefined }, [string]>({
    brief: 'Restore a backup into a volume whose application is stopped, or with --as into a new volume',
    text: 'Without --backup, the newest one that is complete.',
    target: 'project',
    asks: true,
    flags: { backup: text('Id of the backup', 'id'), as: text('Name of a new volume', 'name'), ...WAIT },
    args: NAME,
    async run(session, flags, given) {
      const { id, name } = await find(session, given);
      const backup = await findBackup(session, { id, name }, flags.backup);
      if (!flags.as) await confirmByName(`The files that ${name} contains now will be replaced.`, name, flags);
      const body = flags.as ? { name: flags.as } : { in_place: true };
      const path = `/v2/volumes/${id}/backups/${backup.id}/restore`;
      let row = await session.request('POST', path, { body });
      if (flags.wait) row = await waitWhile(session, `/v2/volumes/${row.id}`, RESTORING, flags);
      printOne(row, flags, SHOWN);
      if (flags.wait && row.status_reason) throw new Failure(String(row.status_reason));
    },
  });

const downloadCommand = (find: Find) =>
  sessionCommand<{ readonly backup?: string | undefined }, [string, string?]>({
    brief: 'Download a backup of a volume, a tar archive',
    text:
      'Without --backup, the newest one that is complete. Only you can read the file, which has all files of the ' +
      'volume. `-` writes to standard output.',
    target: 'project',
    asks: true,
    output: false,
    flags: { backup: text('Id of the backup', 'id') },
    args: tuple(word('volume', 'Name or id of the volume'), maybe('file', 'File (default: named by the server)')),
    async run(session, flags, given, target) {
      const { id, name } = await find(session, given);
      const backup = await findBackup(session, { id, name }, flags.backup);
      const path = `/v2/volumes/${id}/backups/${backup.id}/download`;
      const { url } = await session.request<{ url: string }>('GET', path);
      await downloadFile(new URL(url), target, { ...flags, name });
    },
  });

const scheduleCommand = (find: Find) =>
  sessionCommand<
    { readonly cron?: string | undefined; readonly days?: number | undefined; readonly off?: boolean | undefined },
    [string]
  >({
    brief: 'Take backups of a volume at certain times: svc volumes schedule uploads --cron "30 2 * * *"',
    target: 'project',
    flags: {
      cron: text('Times in UTC, as a cron expression', 'cron'),
      days: integer('Days for which a backup is kept', 1),
      off: toggle('Take no more of them'),
    },
    args: NAME,
    async run(session, flags, given) {
      if (flags.off && flags.cron !== undefined) throw usageFailure('Pass --cron or --off, not both.');
      const { id } = await find(session, given);
      const body = {
        ...(flags.off && { backup_schedule: null }),
        ...(flags.cron !== undefined && { backup_schedule: flags.cron }),
        ...(flags.days !== undefined && { backup_retention_days: flags.days }),
      };
      const row = Object.keys(body).length
        ? await session.request('PATCH', `/v2/volumes/${id}`, { body })
        : await session.request('GET', `/v2/volumes/${id}`);
      printOne(row, flags, { name: 'name', schedule: 'backup_schedule', 'kept days': 'backup_retention_days' });
    },
  });

async function findBackup(
  session: Session,
  { id, name }: { id: string; name: string },
  given: string | undefined,
): Promise<Row> {
  const rows = await session.list(`/v2/volumes/${id}/backups`, { sort: '-created_at' });
  const found = rows.find((row) => (given === undefined ? row.status === 'completed' : row.id === given));
  if (found) return found;
  const what = given === undefined ? 'no complete backup' : `no backup ${given}`;
  throw new Failure(`The volume ${name} has ${what}.`, EXIT.notFound, [`Take one: svc volumes backup ${name} --wait`]);
}
