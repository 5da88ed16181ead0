// projects, and members, who are managed on a page of the dashboard.
import { buildRouteMap } from '@stricli/core';
import { command, sessionCommand, text, toggle, tuple, word, type Shell } from '../command';
import { credentialsLock, readCredentials } from '../config/credentials';
import { withLock } from '../config/lock';
import { deletedColumns, deleteToBin } from '../deletion';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printOne, printRows, writeLine, type Row } from '../output/print';
import { shellWord } from '../output/shell_word';
import { isTerminal } from '../output/terminal';
import { namesOf, openSession, type Session } from '../session';
import { saveLogin } from '../tokens';
import { openInBrowser } from './login';

const PROJECT = tuple(word('project', 'Name or id of the project'));

const ls = sessionCommand({
  brief: 'List the projects that you can reach',
  target: 'server',
  async run(session, flags) {
    const current = await currentProject(session);
    const columns = {
      NAME: 'name',
      ROLE: 'role',
      CURRENT: (row: Row) => (row.id === current ? 'yes' : ''),
      ID: 'id',
    };
    printRows(await listProjects(session), columns, flags);
  },
});

const create = sessionCommand<{ readonly region?: string | undefined; readonly use?: boolean | undefined }, [string]>({
  brief: 'Create a project',
  target: 'server',
  flags: {
    region: text('Region in which its resources are made', 'region'),
    use: toggle('Act in it from now on, where no folder is linked'),
  },
  args: tuple(word('name', 'Name of the project')),
  async run(session, flags, name) {
    const body = { name, ...(flags.region && { default_region: flags.region }) };
    const made = await session.request('POST', '/v2/projects', { body, project: 'none' });
    if (flags.use) await keepProject(session, made);
    printOne(made, flags, { name: 'name', region: 'default_region', id: 'id' });
  },
});

const use = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Act in a project from now on',
  text: 'Where a folder is linked, --project is passed or SVC_PROJECT is set, that wins.',
  target: 'server',
  output: false,
  args: PROJECT,
  run: async (session, _, given) => keepProject(session, await findProject(session, given)),
});

const rm = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete an empty project',
  target: 'server',
  asks: true,
  output: false,
  args: PROJECT,
  async run(session, flags, given) {
    const { id, ...found } = await findProject(session, given);
    const name = String(found.name);
    const inProject = openSession({ ...flags, project: String(id) });
    const texts = { what: `The project ${name} will be deleted.`, done: `Deleted the project ${name}.` };
    const restore = `svc projects restore ${shellWord(name)}`;
    await deleteToBin({ session: inProject, flags, name, ...texts, restore }, () =>
      session.send('DELETE', `/v2/projects/${id}`, { project: 'none' }),
    );
  },
});

type Entry = Row & { id: string; resource: { id: string; name: string } };

const deleted = sessionCommand({
  brief: 'List the projects that were deleted and can be restored',
  target: 'server',
  async run(session, flags) {
    const columns = {
      NAME: 'resource.name',
      ...deletedColumns,
      ID: 'resource.id',
    };
    printRows(await listDeleted(session), columns, flags);
  },
});

const restore = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Restore a deleted project, with its members and its keys',
  target: 'server',
  args: tuple(word('project', 'Name or id of the deleted project')),
  async run(session, flags, given) {
    const { id } = await findDeleted(session, given);
    const path = `/v2/deleted_projects/${id}/restore`;
    const restored = await session.request('POST', path, { body: {}, project: 'none' });
    for (const note of restored.notes as string[]) notice(note);
    printOne(restored, flags, { name: 'resource.name', id: 'resource.id' });
  },
});

const listDeleted = (session: Session): Promise<Entry[]> =>
  session.list<Entry>('/v2/deleted_projects', {}, { project: 'none' });

async function findDeleted(session: Session, given: string): Promise<Entry> {
  const entries = await listDeleted(session);
  const found = entries.filter(({ id, resource }) => [id, resource.id, resource.name].includes(given));
  if (found.length > 1)
    throw usageFailure(
      `Several deleted projects are named "${given}". Pass an id.`,
      ...found.map(({ resource, deleted_at }) => `${resource.id}  deleted ${String(deleted_at)}`),
    );
  if (found[0]) return found[0];
  throw new Failure(`There is no deleted project "${given}" that you owned.`, EXIT.notFound, [
    namesOf(entries.map(({ resource }) => resource)),
  ]);
}

async function currentProject(session: Session): Promise<string | undefined> {
  try {
    return await session.project();
  } catch {
    return undefined;
  }
}

const listProjects = (session: Session): Promise<(Row & { id: string; name: string })[]> =>
  session.list('/v2/me/projects', {}, { project: 'none' });

async function findProject(session: Session, given: string): Promise<Row> {
  const projects = await listProjects(session);
  const found = projects.find(({ id }) => id === given) ?? projects.find(({ name }) => name === given);
  if (found) return found;
  throw new Failure(`There is no project "${given}" that you can reach.`, EXIT.notFound, [namesOf(projects)]);
}

async function keepProject({ server, flags }: Session, { id, name }: Row): Promise<void> {
  if (flags.token !== undefined || process.env.SVC_TOKEN)
    throw usageFailure(
      'A project is kept with a login, and here is a token.',
      `Set SVC_PROJECT=${String(id)} instead.`,
    );
  await withLock(credentialsLock(), async () => {
    const login = readCredentials().servers[server];
    if (login) saveLogin(server, { ...login, project_id: String(id) });
  });
  notice(`Commands outside of linked folders act in the project ${String(name)} now.`);
}

export const projects = buildRouteMap<string, Shell>({
  routes: { ls, create, use, rm, deleted, restore },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Projects' },
});

export const members = command({
  brief: 'Open the page of the members of the project',
  text:
    'People are invited, given a role and removed on a page of the dashboard alone, which asks who you are: no key ' +
    'and no program may decide who gets in. Prints the address of the page; without a terminal, nothing is opened.',
  target: 'project',
  output: false,
  async run(flags) {
    const session = openSession(flags);
    const project = await session.project();
    if (project === undefined)
      throw usageFailure('The token belongs to a project, and does not say which.', 'Pass --project with its id.');
    const url = new URL(`/projects/${project}/members`, session.server).href;
    if (isTerminal()) openInBrowser(url);
    writeLine(url);
  },
});
