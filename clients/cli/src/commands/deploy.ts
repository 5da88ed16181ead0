// deploy, rollback and promote.
import { duration, maybe, sessionCommand, text, toggle, tuple, word } from '../command';
import { EXIT, Failure, usageFailure } from '../failure';
import { notice } from '../output/notice';
import { printOne, type Row } from '../output/print';
import { findProjectNamed, namesOf, type Session } from '../session';
import { followDeployment } from '../settle';
import { printDeployed } from './up';

type WaitFlags = { readonly wait?: boolean | undefined; readonly timeout?: number | undefined };
type DeployFlags = WaitFlags & {
  readonly commit?: string | undefined;
  readonly branch?: string | undefined;
  readonly image?: string | undefined;
  readonly clearCache?: boolean | undefined;
};

const WAIT = {
  wait: toggle('Follow the deployment to its end'),
  timeout: duration('With --wait: no longer than this'),
};

export const deploy = sessionCommand<DeployFlags>({
  brief: 'Deploy a commit, a branch or an image',
  text: 'Without flags, deploys what the source of the application says. `svc up` deploys this folder.',
  flags: {
    commit: text('Commit to deploy', 'sha'),
    branch: text('Branch to deploy', 'branch'),
    image: text('Image to run', 'image'),
    clearCache: toggle('Build without the cache'),
    ...WAIT,
  },
  async run(session, flags) {
    const application = await session.application();
    if (!flags.image) await requireDeployable(session, application);
    const body = {
      ...(flags.commit && { commit_sha: flags.commit }),
      ...(flags.branch && { branch: flags.branch }),
      ...(flags.image && { image: flags.image }),
      ...(flags.clearCache && { clear_cache: true }),
    };
    await finish(
      session,
      application,
      await session.request('POST', `/v2/applications/${application}/deployments`, { body }),
      flags,
    );
  },
});

/** What is uploaded has no source that a deployment could take again. */
async function requireDeployable(session: Session, application: string): Promise<void> {
  const { name, source } = await session.request('GET', `/v2/applications/${application}`);
  if ((source as Row | null)?.type !== 'upload') return;
  throw usageFailure(
    `${name} is deployed from a folder.`,
    'Deploy this folder: svc up',
    'Deploy an image: svc deploy --image IMAGE',
  );
}

export const rollback = sessionCommand<WaitFlags, [string?]>({
  brief: 'Return to an earlier deployment',
  text: 'Without a number, returns to the last deployment before the active one.',
  flags: WAIT,
  args: tuple(maybe('deployment', 'Number or id of the deployment')),
  async run(session, flags, given) {
    const application = await session.application();
    const deployment_id = await findTarget(session, application, given);
    const path = `/v2/applications/${application}/rollback`;
    await finish(session, application, await session.request('POST', path, { body: { deployment_id } }), flags);
  },
});

async function findTarget(session: Session, application: string, given: string | undefined): Promise<string> {
  if (given !== undefined) return findDeployment(session, application, given);
  const { current_deployment_id } = await session.request('GET', `/v2/applications/${application}`);
  const all = await session.list(`/v2/applications/${application}/deployments`, { sort: '-number' });
  const active = all.find(({ id }) => id === current_deployment_id);
  // A rollback that went back is not what one goes back to.
  const before = Number(active?.number ?? Infinity);
  const found = all.find(
    ({ id, number, rollback_possible }) =>
      rollback_possible && Number(number) < before && id !== active?.source_deployment_id,
  );
  if (!found) throw new Failure('There is no earlier deployment to return to.', EXIT.notFound);
  return String(found.id);
}

/** The id of a deployment that is named by its number or id. */
export async function findDeployment(session: Session, application: string, given: string): Promise<string> {
  if (given.startsWith('dep_')) return given;
  const all = await session.list(`/v2/applications/${application}/deployments`);
  const found = all.find(({ number }) => String(number) === given.replace(/^[#v]/, ''));
  if (found) return String(found.id);
  throw new Failure(`There is no deployment ${given}.`, EXIT.notFound, ['List them: svc deployments']);
}

type PromoteFlags = WaitFlags & { readonly fromProject?: string | undefined };

export const promote = sessionCommand<PromoteFlags, [string]>({
  brief: 'Deploy what another application runs',
  text:
    'svc promote shop-staging --app shop: the files that run there are deployed here, without a build. Variables, ' +
    'settings, sizes and commands are those of the application that gets them.',
  flags: { fromProject: text('Project of the other application (default: the same)', 'name'), ...WAIT },
  args: tuple(word('from', 'Name or id of the application whose version is deployed')),
  async run(session, flags, given) {
    const application = await session.application();
    const source_application_id = await findSource(session, given, flags.fromProject);
    const path = `/v2/applications/${application}/promote`;
    const deployment = await session.request('POST', path, { body: { source_application_id } });
    const { application_name: name, number } = deployment.promoted_from as Row;
    notice(`Deploying what deployment ${number} of ${name} runs.`);
    await finish(session, application, deployment, flags);
  },
});

async function findSource(session: Session, given: string, project: string | undefined): Promise<string> {
  if (/^app_\w{26}$/.test(given)) return given;
  const path =
    project === undefined
      ? '/v2/applications'
      : `/v2/projects/${await findProjectNamed(session, project)}/applications`;
  const call = project === undefined ? {} : { project: 'none' as const };
  const rows = await session.list<Row & { id: string; name: string }>(path, {}, call);
  const found = rows.find(({ name }) => name === given);
  if (found) return found.id;
  const where = project === undefined ? 'in this project' : `in the project ${project}`;
  throw new Failure(`There is no application "${given}" ${where}.`, EXIT.notFound, [namesOf(rows)]);
}

async function finish(
  session: Session,
  application: string,
  deployment: Row,
  flags: WaitFlags & { json?: boolean | undefined; field?: string | undefined },
): Promise<void> {
  if (!flags.wait) return printOne(deployment, flags, { id: 'id', number: 'number', status: 'status' });
  notice(`Deployment ${deployment.number}`);
  const log = flags.json ? 'hidden' : 'shown';
  const ended = await followDeployment(session, application, deployment, { ...flags, log });
  await printDeployed(session, application, ended, flags);
}
