// The story of the demo: one application from its first deployment to its end, through the public API alone.
import type { Resource } from './api';
import { showCache } from './cdn';
import { makeRepository, type Repository } from './repository';
import type { Show } from './show';
import type { Stage } from './stage';
import { tracesOf, type Traces } from './traces';
import { startTraffic, visit, type Count } from './visitors';

export interface Play {
  stage: Stage;
  show: Show;
  /** Once it was made. */
  application?: { id: string; host: string; url: string };
  /** Ports that its instances have printed. */
  ports: Set<number>;
}

interface About {
  greeting: string;
  instance: string;
  port: number;
}

interface Deployment extends Resource {
  number: number;
}

const ENDED = new Set(['active', 'superseded', 'failed', 'canceled']);
const DEPLOYED_WITHIN_MS = 60_000;
/** Measured every 15 seconds. */
const MEASURED_WITHIN_MS = 25_000;
const GONE_WITHIN_MS = 20_000;
const KNOWN_WITHIN_MS = 5_000;
const LOG_LINE_WITHIN_MS = 5_000;

/** Checks come often, and the broken version is given up sooner than after the usual minute. */
const QUICK = {
  health_check: { type: 'http', path: '/about', interval_seconds: 5, timeout_seconds: 4, grace_period_seconds: 10 },
  run: { shutdown_grace_seconds: 5 },
};

export async function perform(play: Play): Promise<void> {
  const repository = makeRepository(`${play.stage.directory}/sample`);
  await create(play, repository.url);
  const first = await firstDeployment(play, repository);
  await scale(play);
  await secondVersion(play, repository);
  await brokenVersion(play, repository);
  await rollBack(play, first);
  await observe(play);
  await showCache(play.stage, play.show, play.application?.id ?? '');
  await remove(play);
}

async function create(play: Play, repository_url: string): Promise<void> {
  const { stage, show } = play;
  show.step(`An application is made from the Git address ${repository_url}`);
  const made = await stage.api.call('POST', '/v2/applications', {
    name: 'sample',
    source: { type: 'git', repository_url, branch: 'main' },
  });
  const host = String(made.default_hostname);
  play.application = { id: made.id, host, url: `http://${host}:${stage.port}` };
  await stage.api.call('PATCH', `/v2/applications/${made.id}/settings`, QUICK);
  let before = await visit(stage.port, host);
  // The ingress hears of it a moment after the answer.
  for (
    const end = Date.now() + KNOWN_WITHIN_MS;
    before.status === 404 && Date.now() < end;
    before = await visit(stage.port, host)
  )
    await new Promise((resolve) => setTimeout(resolve, 50));
  show.expect(
    made.status === 'new' && before.status === 503,
    `${made.id} is ${made.status}; ${play.application.url} answers 503 until it is deployed`,
  );
}

async function firstDeployment(play: Play, repository: Repository): Promise<string> {
  const { stage, show } = play;
  show.step('It is deployed; the log is read while it is written');
  repository.commit('first', 'First version');
  const deployment = await deploy(play);
  show.expect(
    deployment.status === 'active',
    `deployment ${deployment.number} is ${deployment.status}${reason(deployment)}`,
  );
  const { host, url } = applicationOf(play);
  const page = await visit(stage.port, host);
  show.expect(
    page.status === 200 && page.body.includes('Hello from version 1'),
    `${url} answers 200: ${page.body.split('\n').find((line) => line.startsWith('<h1>'))}`,
  );
  play.ports.add((await about(play)).port);
  const traces = await traced(play);
  show.expect(
    Object.values(traces).every((found: unknown[]) => found.length > 0),
    `on the host: ${words(traces)}`,
  );
  return deployment.id;
}

async function scale(play: Play): Promise<void> {
  const { stage, show } = play;
  show.step('It is scaled to three instances while visitors come');
  const { id } = applicationOf(play);
  const { data } = await stage.api.call<{ data: Resource[] }>('GET', `/v2/applications/${id}/processes?type=web`);
  const web = `/v2/applications/${id}/processes/${data[0]?.id}`;
  const count = await underTraffic(play, async () => {
    await stage.api.call('POST', `${web}/scale`, { instances: 3 });
    await stage.api.until(web, ({ running_instances, status }) => running_instances === 3 && status === 'running');
  });
  requireNoneFailed(play, count);
  show.expect(new Set(answers(count).map(({ instance }) => instance)).size === 3, 'all three answer');
}

async function secondVersion(play: Play, repository: Repository): Promise<void> {
  const { show } = play;
  repository.commit('second', 'Second version');
  show.step('Version 2 is deployed while visitors come');
  let status = '';
  const count = await underTraffic(play, async () => {
    status = (await deploy(play)).status;
  });
  show.expect(status === 'active', 'deployment 2 is active');
  requireNoneFailed(play, count);
  show.expect((await about(play)).greeting.includes('version 2'), `visitors see: ${(await about(play)).greeting}`);
}

async function brokenVersion(play: Play, repository: Repository): Promise<void> {
  const { show } = play;
  repository.commit('broken', 'Wait for the database');
  show.step('A broken version is deployed: it never listens');
  let ended: Deployment | undefined;
  const count = await underTraffic(play, async () => {
    ended = await deploy(play);
  });
  show.expect(ended?.status === 'failed', `deployment 3 is ${ended?.status}: ${ended?.status_reason}`);
  requireNoneFailed(play, count);
  show.expect(
    answers(count).every(({ greeting }) => greeting.includes('version 2')),
    'everybody saw version 2 all the time',
  );
}

async function rollBack(play: Play, to: string): Promise<void> {
  const { stage, show } = play;
  show.step('Back to version 1 while visitors come');
  const { id } = applicationOf(play);
  const begin = performance.now();
  let took = 0;
  const count = await underTraffic(play, async () => {
    const { id: deployment } = await stage.api.call('POST', `/v2/applications/${id}/rollback`, { deployment_id: to });
    const ended = await stage.api.until<Deployment>(
      `/v2/applications/${id}/deployments/${deployment}`,
      ({ status }) => ENDED.has(status),
      DEPLOYED_WITHIN_MS,
    );
    took = performance.now() - begin;
    show.expect(
      ended.status === 'active',
      `deployment ${ended.number} is ${ended.status}${reason(ended)} after ${(took / 1000).toFixed(1)} s`,
    );
  });
  requireNoneFailed(play, count);
  show.expect((await about(play)).greeting.includes('version 1'), `visitors see: ${(await about(play)).greeting}`);
}

async function observe(play: Play): Promise<void> {
  const { stage, show } = play;
  const base = `/v2/applications/${applicationOf(play).id}`;
  show.step('Its log and its measurements');
  type Lines = { data: { source: string; process_type: string | null; message: string }[] };
  for (const [source, text] of [
    ['app', 'listening'],
    ['router', '/about'],
    ['system', 'running'],
  ]) {
    const { data } = await stage.api.until<Lines>(
      `${base}/logs?source=${source}&search=${text}&limit=1`,
      (found) => found.data.length > 0,
      LOG_LINE_WITHIN_MS,
    );
    show.line(`${source?.padEnd(6)} ${data[0]?.message}`);
  }
  type Metrics = { series: { metric: string; unit: string; points: { value: number }[] }[] };
  const place = `${base}/metrics?metrics=requests,response_time_p95_ms,responses_5xx,memory_mb`;
  const of = ({ series }: Metrics, metric: string): number[] =>
    series.filter((one) => one.metric === metric).flatMap(({ points }) => points.map(({ value }) => value));
  const found = await stage.api.until<Metrics>(
    place,
    (one) => of(one, 'requests').some(Boolean) && of(one, 'memory_mb').length > 0,
    MEASURED_WITHIN_MS,
  );
  const total = (metric: string): number => of(found, metric).reduce((sum, value) => sum + value, 0);
  show.expect(
    total('responses_5xx') <= 1,
    `${total('requests')} requests, 95 of 100 within ` +
      `${Math.max(...of(found, 'response_time_p95_ms')).toFixed(0)} ms, ` +
      `${Math.max(...of(found, 'memory_mb')).toFixed(0)} MB an instance`,
  );
}

async function remove(play: Play): Promise<void> {
  const { stage, show } = play;
  show.step('It is deleted, and purged from the bin');
  const { id, host, url } = applicationOf(play);
  await stage.api.remove(`/v2/applications/${id}`);
  const left = await untilNothingIsLeft(play);
  show.expect(
    left.processes.length + left.ports.length + left.directories.length === 0,
    `on the host: ${words(left)} (looked at ${play.ports.size} ports)`,
  );
  const { status } = await visit(stage.port, host);
  show.expect(status === 404, `${url} answers 404`);
  play.application = undefined;
}

/** Deploys the head of the branch and shows the log on the way. */
async function deploy({ stage, show, application }: Play): Promise<Deployment> {
  const base = `/v2/applications/${application?.id}/deployments`;
  const { id } = await stage.api.call('POST', base, {});
  const lines: string[] = [];
  const endTail = stage.api.tail<{ message: string }>(`${base}/${id}/logs`, ({ message }) => {
    lines.push(message);
    show.line(message);
  });
  const ended = await stage.api.until<Deployment>(
    `${base}/${id}`,
    ({ status }) => ENDED.has(status),
    DEPLOYED_WITHIN_MS,
  );
  for (
    const end = Date.now() + LOG_LINE_WITHIN_MS;
    !lines.some((line) => /is active|failed/i.test(line)) && Date.now() < end;
  )
    await new Promise((resolve) => setTimeout(resolve, 50));
  await endTail();
  show.expect(lines.length > 0, `${lines.length} lines of its log came over server-sent events`);
  return ended;
}

async function underTraffic(play: Play, work: () => Promise<void>): Promise<Count> {
  const stop = startTraffic(play.stage.port, applicationOf(play).host, '/about');
  try {
    await work();
  } catch (error) {
    await stop();
    throw error;
  }
  await new Promise((resolve) => setTimeout(resolve, 300)); // until the last of the old ones have gone from the routes
  const count = await stop();
  for (const { port } of answers(count)) play.ports.add(port);
  return count;
}

function requireNoneFailed({ show }: Play, { requests, failed }: Count): void {
  show.expect(
    requests > 0 && failed.length === 0,
    `${requests} requests meanwhile, ${failed.length} failed${failed[0] ? ` (${failed[0]})` : ''}`,
  );
}

function answers({ bodies }: Count): About[] {
  return [...bodies].map((body) => JSON.parse(body) as About);
}

async function about(play: Play): Promise<About> {
  return JSON.parse((await visit(play.stage.port, applicationOf(play).host, '/about')).body) as About;
}

function traced({ stage, application, ports }: Play): Promise<Traces> {
  return tracesOf(stage.directory, application?.id ?? '', [...ports]);
}

/** @returns remains after the timeout */
export async function untilNothingIsLeft(play: Play): Promise<Traces> {
  for (const end = Date.now() + GONE_WITHIN_MS; ; await new Promise((resolve) => setTimeout(resolve, 100))) {
    const left = await traced(play);
    if (left.processes.length + left.ports.length + left.directories.length === 0 || Date.now() > end) return left;
  }
}

function words({ processes, ports, directories }: Traces): string {
  const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
  return (
    `${counted(processes.length, 'process', 'processes')}, ${counted(ports.length, 'open port', 'open ports')}, ` +
    `${counted(directories.length, 'directory', 'directories')}`
  );
}

function reason({ status_reason }: Resource): string {
  return status_reason ? `: ${status_reason}` : '';
}

function applicationOf({ application }: Play): { id: string; host: string; url: string } {
  if (!application) throw new Error('there is no application yet');
  return application;
}
