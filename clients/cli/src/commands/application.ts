// status, open, ps, scale, restart.
import { findApplicationUrl } from '../application_url';
import { duration, maybe, sessionCommand, toggle, tuple, words } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { formatAge, printJson, printOne, printRows, writeLine, type Row } from '../output/print';
import { isTerminal } from '../output/terminal';
import type { Session } from '../session';
import { waitWhile } from '../settle';
import { DEPLOYMENT_COLUMNS } from './applications';
import { openInBrowser } from './login';

const DEPLOYMENTS_SHOWN = 5;

export const status = sessionCommand({
  brief: 'Show the application and its deployments',
  async run(session, flags) {
    const id = await session.application();
    const [application, url] = await Promise.all([
      session.request('GET', `/v2/applications/${id}`),
      findApplicationUrl(session, id),
    ]);
    if (flags.field !== undefined) return printOne({ ...application, url }, flags);
    const [deployments, processes] = await Promise.all([
      session.request<{ data: Row[] }>('GET', `/v2/applications/${id}/deployments`, {
        query: { limit: DEPLOYMENTS_SHOWN },
      }),
      session.list(`/v2/applications/${id}/processes`),
    ]);
    if (flags.json) return printJson({ ...application, url, processes, deployments: deployments.data });
    printOne(application, flags, {
      application: 'name',
      status: 'status',
      reason: 'status_reason',
      url: () => url,
      region: 'region',
      processes: () => processes.map((one) => `${one.type} ${one.running_instances}/${one.instances}`).join(', '),
    });
    writeLine('');
    printRows(deployments.data, DEPLOYMENT_COLUMNS, flags);
    const [newest] = deployments.data;
    if (newest?.status === 'failed')
      notice(
        `Deployment ${newest.number} failed: ${newest.status_reason}\nIts log: svc logs --deployment ${newest.number}`,
      );
  },
});

export const open = sessionCommand<{ readonly dashboard?: boolean | undefined }>({
  brief: 'Open the application, or with --dashboard its page, in a browser',
  text: 'Prints the address; without a terminal, nothing is opened.',
  output: false,
  flags: { dashboard: toggle('Open the page of the application in the dashboard') },
  async run(session, { dashboard }) {
    const application = await session.application();
    const url = dashboard
      ? new URL(`/applications/${application}`, session.server).href
      : await findApplicationUrl(session, application);
    if (url === null)
      throw new Failure('Nothing answers visitors: the process type web is scaled to 0.', EXIT.failed, [
        'Start it: svc scale web=1',
      ]);
    if (isTerminal()) openInBrowser(url);
    writeLine(url);
  },
});

export const ps = sessionCommand({
  brief: 'List instances',
  async run(session, flags) {
    const instances = await session.list(`/v2/applications/${await session.application()}/instances`);
    printRows(
      instances,
      {
        INSTANCE: 'id',
        PROCESS: 'process_type',
        STATUS: 'status',
        CPU: (row) => (typeof row.cpu_percent === 'number' ? `${row.cpu_percent.toFixed(1)} %` : ''),
        MEMORY: (row) => (row.memory_mb === null ? '' : `${row.memory_mb} MB`),
        RESTARTS: 'restart_count',
        STARTED: (row) => formatAge(row.started_at),
        REASON: 'status_reason',
      },
      flags,
    );
  },
});

async function findProcess(session: Session, application: string, type: string): Promise<Row> {
  const processes = await session.list(`/v2/applications/${application}/processes`);
  const found = processes.find((one) => one.type === type);
  if (found) return found;
  const names = processes.map((one) => one.type).join(', ') || 'none until the first deployment';
  throw new Failure(`There is no process type "${type}".`, EXIT.notFound, [`There are: ${names}`]);
}

type WaitFlags = { readonly wait?: boolean | undefined; readonly timeout?: number | undefined };
const WAIT = { wait: toggle('Wait until it is done'), timeout: duration('With --wait: no longer than this') };

export const scale = sessionCommand<WaitFlags, string[]>({
  brief: 'Set the number of instances: svc scale web=3',
  text: 'Turns autoscaling of the process type off. Autoscaling is set with `svc api scaleProcess`.',
  flags: WAIT,
  args: words('type=count', 'Process types and their numbers of instances', 1),
  async run(session, flags, ...given) {
    const wanted = given.map((one) => {
      const [, type = '', count = ''] = /^([\w-]+)=(\d{1,5})$/.exec(one) ?? [];
      if (!type) throw usageFailure(`"${one}": expected a process type and a number, such as web=3.`);
      return { type, instances: Number(count) };
    });
    const application = await session.application();
    const rows: Row[] = [];
    for (const { type, instances } of wanted) {
      const found = await findProcess(session, application, type);
      const path = `/v2/applications/${application}/processes/${found.id}`;
      const scaled = await session.request('POST', `${path}/scale`, { body: { instances } });
      rows.push(flags.wait ? await waitWhile(session, path, ['scaling'], flags) : scaled);
    }
    printRows(rows, { PROCESS: 'type', INSTANCES: 'instances', RUNNING: 'running_instances', STATUS: 'status' }, flags);
  },
});

export const restart = sessionCommand<WaitFlags, [string?]>({
  brief: 'Restart the application or one process type',
  flags: WAIT,
  args: tuple(maybe('type', 'Process type (default: all)')),
  async run(session, flags, type) {
    const application = await session.application();
    const body = type ? { process_id: (await findProcess(session, application, type)).id } : {};
    const path = `/v2/applications/${application}`;
    let row = await session.request('POST', `${path}/restart`, { body });
    if (flags.wait) row = await waitWhile(session, path, ['restarting'], flags);
    else notice('The restart goes on in the background.');
    printOne(row, flags, { application: 'name', status: 'status', reason: 'status_reason' });
  },
});
