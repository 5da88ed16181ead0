// undo: takes a change back, the last of one's own where none is named.
import { maybe, sessionCommand, tuple } from '../command';
import { EXIT, Failure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printOne, type Row } from '../output/print';
import { clean, confirm } from '../output/terminal';
import type { Session } from '../session';

interface Entry extends Row {
  id: string;
  action: string;
  resource: { type: string; id: string; name: string | null };
  changed_fields: string[];
  created_at: string;
  revertible: boolean;
  revert_obstacle: string | null;
}

/** Entries that are looked through for the last change. */
const LOOKED_THROUGH = 50;

export const undo = sessionCommand<NonNullable<unknown>, [string | undefined]>({
  brief: 'Take back a change of settings, variables, records or scale',
  text:
    'Without an id, the last change that you made yourself and that can be taken back: it is shown, and done once ' +
    'you confirm. Ids are in the activity: svc api listProjectActivity. What has changed again since is left as it ' +
    'is, and both values are printed. Undo the undo to have the change again.',
  target: 'project',
  asks: true,
  args: tuple(maybe('id', 'Id of the activity entry, act_…')),
  async run(session, flags, id) {
    const entry = id === undefined ? await lastOwn(session) : await entryOf(session, id);
    if (entry) notice(describe(entry));
    await confirm(entry ? 'Take it back?' : `Take back ${id}, which is older than the last 100 entries?`, flags);
    const answer = await session.request('POST', `/v2/activity/${entry?.id ?? id}/revert`);
    printOne(answer, flags, { reverted: 'action', resource: 'resource.id', 'undo again with': 'reverted_by' });
  },
});

async function lastOwn(session: Session): Promise<Entry> {
  const me = await session.request('GET', '/v2/me', { project: 'none' });
  const actor_id = ((me.user as Row | null)?.id ?? (me.token as Row).id) as string;
  const page = await session.request('GET', await activityPath(session), {
    query: { actor_id, limit: LOOKED_THROUGH },
  });
  const entries = page.data as Entry[];
  const index = entries.findIndex(({ revertible }) => revertible);
  const found = entries[index];
  if (!found) throw new Failure('There is no change of yours that can be taken back.', EXIT.notFound);
  for (const newer of entries.slice(0, index).filter(isOfNote).slice(0, 5))
    notice(`Cannot be taken back (${newer.revert_obstacle}): ${describe(newer)}`);
  return found;
}

const isOfNote = ({ revert_obstacle }: Entry): boolean => revert_obstacle !== 'reverted';

/** One of the last entries by its id; of others the server says what is wrong with them. */
async function entryOf(session: Session, id: string): Promise<Entry | undefined> {
  const page = await session.request('GET', await activityPath(session), { query: { limit: 100 } });
  return (page.data as Entry[]).find((entry) => entry.id === id);
}

const activityPath = async (session: Session): Promise<string> => {
  const project = await session.project();
  const own = project ?? ((await session.request('GET', '/v2/me', { project: 'none' })).project as Row | null)?.id;
  if (own === undefined) throw new Failure('Pass --project with the id of the project.', EXIT.usage);
  return `/v2/projects/${String(own)}/activity`;
};

function describe({ action, resource, changed_fields, created_at }: Entry): string {
  const what = `${resource.type.replaceAll('_', ' ')} ${clean(resource.name ?? resource.id)}`;
  const fields = changed_fields.length ? ` (${changed_fields.slice(0, 8).join(', ')})` : '';
  return `${formatAge(created_at)}: ${action} of the ${what}${fields}`;
}
