// bin: ls, restore, purge. What was deleted is kept for a time, and comes back with its id, data and credentials.
import { buildRouteMap } from '@stricli/core';
import { sessionCommand, text, tuple, word, type Shell } from '../command';
import { deletedColumns, ownProject } from '../deletion';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printOne, printRows, type Row } from '../output/print';
import { confirmByName } from '../output/terminal';
import { namesOf, type Session } from '../session';

type Entry = Row & { id: string; resource: { type: string; id: string; name: string | null } };
const DELETED = tuple(word('name', 'Name or id of what was deleted'));

const ls = sessionCommand({
  brief: 'List what was deleted and can be restored',
  target: 'project',
  async run(session, flags) {
    const columns = {
      NAME: 'resource.name',
      TYPE: 'resource.type',
      ...deletedColumns,
      ID: 'id',
    };
    printRows(await entriesOf(session), columns, flags);
  },
});

const restore = sessionCommand<{ readonly name?: string | undefined }, [string]>({
  brief: 'Restore something that was deleted',
  text: 'With --name, under another name: its own may be taken by now.',
  target: 'project',
  flags: { name: text('New name', 'name') },
  args: DELETED,
  async run(session, flags, given) {
    const { id } = await findEntry(session, given);
    const body = flags.name === undefined ? {} : { name: flags.name };
    const restored = await session.request('POST', `/v2/bin/${id}/restore`, { body });
    for (const note of restored.notes as string[]) notice(note);
    printOne(restored, flags, { name: 'resource.name', type: 'resource.type', id: 'resource.id' });
  },
});

const purge = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete something for good that is in the bin',
  target: 'project',
  asks: true,
  output: false,
  args: DELETED,
  async run(session, flags, given) {
    const { id, resource } = await findEntry(session, given);
    const name = resource.name ?? resource.id;
    await confirmByName(`${name} will be deleted for good. This cannot be undone.`, name, flags);
    await session.send('DELETE', `/v2/bin/${id}`);
    notice(`Deleted ${name} for good.`);
  },
});

async function entriesOf(session: Session): Promise<Entry[]> {
  return session.list<Entry>(`/v2/projects/${await ownProject(session)}/bin`);
}

/** The one that was deleted last comes first; several of a name are told apart by their ids. */
async function findEntry(session: Session, given: string): Promise<Entry> {
  const entries = await entriesOf(session);
  const found = entries.filter(({ id, resource }) => [id, resource.id, resource.name].includes(given));
  if (found.length > 1)
    throw usageFailure(
      `Several deleted resources are named "${given}". Pass an id.`,
      ...found.map(({ id, resource, deleted_at }) => `${id}  ${resource.type}, deleted ${String(deleted_at)}`),
    );
  if (found[0]) return found[0];
  const names = entries.map(({ resource: { id, name } }) => ({ id, name: name ?? id }));
  throw new Failure(`There is no "${given}" in the bin of this project.`, EXIT.notFound, [
    namesOf(names),
    'Deleted projects: svc projects deleted',
  ]);
}

export const bin = buildRouteMap<string, Shell>({
  routes: { ls, restore, purge },
  aliases: { list: 'ls' },
  docs: { brief: 'What was deleted' },
});
