// link and init: which application a folder belongs to.
import * as path from 'node:path';
import { command, maybe, sessionCommand, text, toggle, tuple } from '../command';
import { findLink, removeLink, writeLink } from '../config/link';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printOne, type Row } from '../output/print';
import { ask, canAsk } from '../output/terminal';
import { namesOf, openSession, type Session } from '../session';

type LinkFlags = { readonly remove?: boolean | undefined };

export const link = command<LinkFlags, [string?]>({
  brief: 'Link this folder to an application',
  text:
    'Writes .svc/link.json, which contains no secret, and adds .svc/ to .gitignore. Commands in the folder and below ' +
    'act on this application then. Without a name, the application is chosen from a list.',
  target: 'project',
  output: false,
  flags: { remove: toggle('Remove the link') },
  args: tuple(maybe('application', 'Name or id of the application')),
  async run(flags, name) {
    if (flags.remove) return unlink();
    const session = openSession({ ...flags, app: name });
    const application = await session.request('GET', `/v2/applications/${await chooseApplication(session, name)}`);
    linkFolder(session, application);
  },
});

function unlink(): void {
  const found = findLink();
  if (!found) throw new Failure('This folder is not linked.', EXIT.notFound);
  removeLink(found.folder);
  notice(`${found.folder} is no longer linked.`);
}

export function linkFolder(session: Session, application: Row, folder = process.cwd()): void {
  writeLink(folder, {
    url: session.server,
    project_id: String(application.project_id),
    application_id: String(application.id),
  });
  notice(`${folder} is linked to ${application.name} at ${session.server}.`);
}

async function chooseApplication(session: Session, name: string | undefined): Promise<string> {
  if (name) return session.application();
  const applications = await session.list<{ id: string; name: string }>('/v2/applications', { sort: 'name' });
  if (!canAsk()) throw usageFailure('Which application? Pass its name or id.', namesOf(applications));
  if (!applications.length)
    throw new Failure('There is no application in this project.', EXIT.notFound, ['Create one: svc init']);
  applications.forEach((one, index) => notice(`${String(index + 1).padStart(3)}  ${one.name}`));
  const given = await ask('Number or name: ');
  const found = applications.find((one, index) => one.name === given || String(index + 1) === given);
  if (!found) throw new Failure(`There is no application "${given}".`, EXIT.notFound);
  return found.id;
}

type InitFlags = {
  readonly region?: string | undefined;
  readonly repository?: string | undefined;
  readonly branch?: string | undefined;
};

export const init = sessionCommand<InitFlags, [string?]>({
  brief: 'Create an application for this folder, and link it',
  text: 'Without --repository, the application is deployed from this folder with `svc up`.',
  target: 'project',
  flags: {
    region: text('Region (default: that of the project)', 'region'),
    repository: text('Git repository to deploy from', 'url'),
    branch: text('Branch of the repository', 'branch'),
  },
  args: tuple(maybe('name', 'Name (default: that of the folder)')),
  async run(session, flags, name) {
    const { repository, branch, region } = flags;
    const source = repository
      ? { type: 'git', repository_url: repository, ...(branch && { branch }) }
      : { type: 'upload' };
    const application = await createApplication(session, name ?? nameOfFolder(process.cwd()), { source, region });
    linkFolder(session, application);
    printOne(application, flags, { id: 'id', name: 'name', hostname: 'default_hostname', status: 'status' });
  },
});

export function createApplication(
  session: Session,
  name: string,
  rest: Row = { source: { type: 'upload' } },
): Promise<Row> {
  return session.request('POST', '/v2/applications', { body: { name, ...rest } });
}

/** A name that the platform takes: lower-case letters, digits and single hyphens, 3 to 40 characters. */
export function nameOfFolder(folder: string): string {
  const name = path
    .basename(folder)
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 40)
    .replace(/-+$/, '');
  return name.length >= 3 ? name : `app-${name || 'one'}`;
}
