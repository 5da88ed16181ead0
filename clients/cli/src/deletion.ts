// What a person reads before something is deleted, and what brings it back afterwards.
import { notice } from './output/notice';
import { formatAge, type Columns, type Row } from './output/print';
import { confirmByName } from './output/terminal';
import type { Session } from './session';

/** When it was deleted, by whom, and until when it can be restored. */
export const deletedColumns: Columns = {
  DELETED: (row: Row) => formatAge(row.deleted_at),
  BY: 'deleted_by.name',
  'KEPT UNTIL': 'kept_until',
};

interface Deleted {
  session: Session;
  /** What happens, as a sentence. */
  what: string;
  name: string;
  flags: { yes?: boolean | undefined };
  /** The command that restores it. */
  restore: string;
  /** Said afterwards. */
  done: string;
}

/** Deletes what goes to the bin, once the person has entered its name. */
export async function deleteToBin(deleted: Deleted, remove: () => Promise<unknown>): Promise<void> {
  const { session, what, name, flags, restore, done } = deleted;
  const days = await retentionDays(session);
  await confirmByName(`${what} ${retentionText(days)}`, name, flags);
  await remove();
  notice(days ? `${done} Within ${daysText(days)}, this restores it: ${restore}` : done);
}

/** Days in which the server keeps what is deleted; undefined where it does not say so. */
async function retentionDays(session: Session): Promise<number | undefined> {
  try {
    const project = await ownProject(session);
    const { deleted_retention_days: days } = await session.request<Row>('GET', `/v2/projects/${project}`);
    return typeof days === 'number' ? days : undefined;
  } catch {
    // Whether it may be deleted does not depend on what is said about it.
    return undefined;
  }
}

/** Id of the project of the command, or of the key. */
export async function ownProject(session: Session): Promise<string | undefined> {
  type Me = Row & { project: { id: string } | null };
  return (await session.project()) ?? (await session.request<Me>('GET', '/v2/me')).project?.id;
}

function retentionText(days: number | undefined): string {
  if (days === undefined) return 'It goes to the bin, where this server keeps what is deleted.';
  return days ? `It stays in the bin for ${daysText(days)}.` : 'This cannot be undone.';
}

const daysText = (days: number): string => (days === 1 ? 'one day' : `${days} days`);
