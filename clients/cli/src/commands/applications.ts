// apps, delete, deployments, cancel.
import { integer, maybe, sessionCommand, tuple } from '../command';
import { removeLink } from '../config/link';
import { deleteToBin } from '../deletion';
import { EXIT, Failure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printOne, printRows, type Row } from '../output/print';
import { openSession, type Session } from '../session';
import { findDeployment } from './deploy';

export const apps = sessionCommand({
  brief: 'List the applications of the project',
  target: 'project',
  async run(session, flags) {
    const columns = {
      NAME: 'name',
      STATUS: 'status',
      REGION: 'region',
      SOURCE: 'source.type',
      HOSTNAME: 'default_hostname',
      ID: 'id',
    };
    printRows(await session.list('/v2/applications', { sort: 'name' }), columns, flags);
  },
});

const LINES = 20;

export const deployments = sessionCommand<{ readonly lines?: number | undefined }>({
  brief: 'List the deployments',
  flags: { lines: integer('Number of deployments (default: 20)', 1, 100) },
  aliases: { n: 'lines' },
  async run(session, flags) {
    const path = `/v2/applications/${await session.application()}/deployments`;
    const query = { limit: flags.lines ?? LINES };
    const { data } = await session.request<{ data: Row[] }>('GET', path, { query });
    printRows(data, DEPLOYMENT_COLUMNS, flags);
  },
});

export const DEPLOYMENT_COLUMNS = {
  NUMBER: 'number',
  STATUS: 'status',
  TRIGGER: 'trigger',
  SOURCE: (row: Row) => row.commit_message ?? row.image ?? (row.source as Row | null)?.type,
  CREATED: (row: Row) => formatAge(row.created_at),
};

export const remove = sessionCommand<NonNullable<unknown>, [string?]>({
  brief: 'Delete an application with all that belongs to it',
  text: 'Its deployments, variables, domains, schedules and logs end with it. Volumes and databases stay, detached.',
  asks: true,
  output: false,
  args: tuple(maybe('application', 'Name or id (default: the linked one, or --app)')),
  async run(given, flags, name) {
    const session = name === undefined ? given : openSession({ ...flags, app: name });
    const path = `/v2/applications/${await session.application()}`;
    const application = await session.request('GET', path);
    const appName = String(application.name);
    const texts = { what: await describeLoss(session, path, application), done: `Deleted the application ${appName}.` };
    await deleteToBin({ session, flags, name: appName, ...texts, restore: `svc bin restore ${appName}` }, () =>
      session.send('DELETE', path),
    );
    const { link } = session;
    if (!link || link.application_id !== application.id) return;
    removeLink(link.folder);
    notice(`${link.folder} is no longer linked.`);
  },
});

async function describeLoss(session: Session, path: string, { name }: Row): Promise<string> {
  const domains = await session.list(`${path}/domains`);
  const also = domains.length ? ` Visitors of ${domains.map(({ hostname }) => hostname).join(', ')} lose it.` : '';
  return `The application ${name} will be deleted with its deployments, variables and logs.${also}`;
}

export const cancel = sessionCommand<NonNullable<unknown>, [string?]>({
  brief: 'Cancel a deployment or a run that has not finished',
  text: 'Without an argument, cancels the newest deployment that has not finished.',
  args: tuple(maybe('deployment', 'Number or id of the deployment, or id of a run (default: what is under way)')),
  async run(session, flags, given) {
    const path = `/v2/applications/${await session.application()}`;
    const columns = { number: 'number', status: 'status', id: 'id' };
    if (given?.startsWith('run_'))
      return printOne(await session.request('POST', `${path}/runs/${given}/cancel`), flags, {
        ...{ run: 'id', command: 'command', status: 'status' },
      });
    const id = given === undefined ? await findUnfinished(session, path) : await findIn(session, given);
    printOne(await session.request('POST', `${path}/deployments/${id}/cancel`), flags, columns);
  },
});

const findIn = async (session: Session, given: string): Promise<string> =>
  findDeployment(session, await session.application(), given);

async function findUnfinished(session: Session, path: string): Promise<string> {
  const { data } = await session.request<{ data: Row[] }>('GET', `${path}/deployments`, { query: { limit: LINES } });
  const found = data.find(({ finished_at }) => finished_at === null);
  if (found) return String(found.id);
  throw new Failure('No deployment is under way.', EXIT.notFound, ['List them: svc deployments']);
}
