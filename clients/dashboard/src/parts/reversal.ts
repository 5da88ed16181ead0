// What brings back what is deleted: the API says it of each operation, and the operator for how long.
import { projectOf } from '../session';

/** `bin`: the resource is restored from there. `activity`: the entry of the change is taken back. */
export type Reversal = 'bin' | 'activity' | null;

/** As the API keeps what a change was before (docs/decisions/0232-undo-of-settings.md). */
const ACTIVITY_DAYS = 7;

/** The sentence of a question before something is deleted. @param projectId of its project */
export function reversalText(by: Reversal, projectId?: string, kind = ''): string {
  if (by === 'activity') return `It can be taken back in the activity of the project for ${days(ACTIVITY_DAYS)}.`;
  const kept = by === 'bin' ? (projectOf(projectId)?.deleted_retention_days ?? 0) : 0;
  if (kept === 0) return 'This cannot be undone.';
  if (kind.toLowerCase() === 'project')
    return `For ${days(kept)}, its owners can restore it from the list of projects.`;
  return `It stays in the bin for ${days(kept)} and can be restored from there.`;
}

const days = (count: number): string => (count === 1 ? 'one day' : `${count} days`);
