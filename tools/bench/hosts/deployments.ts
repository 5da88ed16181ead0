// Deployments of the sample of the demo through the API, and how long they take. For several measurements.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Repository } from '../../demo/repository';
import type { Stage } from '../../demo/stage';
import { processesWith } from '../../demo/traces';
import { visit } from '../../demo/visitors';
import { median } from '../measure';

const VISIT_PAUSE_MS = 10;
const GIVE_UP_MS = 120_000;
/** The first deployment downloads its Node.js, and makes a layer of it where it becomes an image. */
const DEPLOYED_WITHIN_MS = 600_000;
const ASKED_EVERY_MS = 2_000;

export interface Application {
  id: string;
  host: string;
}

export interface Deployed {
  id: string;
  /** The text of its pages. */
  greeting: string;
  /** Milliseconds from the POST to the first answer of the new version, and between the lines of the log. */
  total: number;
  source: number;
  build: number;
  start: number;
}

/** @param size an application type */
export async function makeApplication(
  { api }: Stage,
  name: string,
  repository_url: string,
  size: string,
): Promise<Application> {
  const made = await api.call('POST', '/v2/applications', {
    name,
    application_type: size,
    source: { type: 'git', repository_url, branch: 'main' },
  });
  return { id: made.id, host: String(made.default_hostname) };
}

export function change({ directory }: Stage, repository: Repository, round: number): string {
  const greeting = `Hello from round ${round}`;
  writeFileSync(path.join(directory, 'sample/greeting.txt'), greeting);
  repository.commit('', `Round ${round}`);
  return greeting;
}

/** @throws Error with what the deployment says of itself where its version is not served */
export async function deploy(stage: Stage, { id, host }: Application, greeting: string): Promise<Deployed> {
  const begin = performance.now();
  const posted = await stage.api.call('POST', `/v2/applications/${id}/deployments`, {});
  const base = `/v2/applications/${id}/deployments/${posted.id}`;
  const served = new AbortController();
  const failure = untilFailed(stage, base, served.signal);
  await Promise.race([untilServed(stage, host, greeting, DEPLOYED_WITHIN_MS), failure]).catch(async (error: Error) => {
    const { data } = await stage.api.call<{ data: { message: string }[] }>('GET', `${base}/logs?order=desc&limit=5`);
    const lines = data.map(({ message }) => message).reverse();
    throw new Error(`${error.message}\nThe log of the deployment ends with:\n${lines.join('\n')}`);
  });
  served.abort();
  const total = performance.now() - begin;
  await stage.api.until(base, ({ status }) => status === 'active');
  const { data } = await stage.api.call<{ data: { timestamp: string; message: string }[] }>(
    'GET',
    `${base}/logs?order=asc&limit=1000`,
  );
  const at = (words: string): number =>
    Date.parse(data.find(({ message }) => message.includes(words))?.timestamp ?? '');
  const source = at('build script') - Date.parse(String(posted.created_at));
  return {
    id: posted.id,
    greeting,
    total,
    source,
    build: at('Starting the new version') - at('build script'),
    start: at('is active') - at('Starting the new version'),
  };
}

/** Resolves at the signal. @throws Error with its reason where the deployment fails */
async function untilFailed({ api }: Stage, place: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const { status, status_reason } = await api.call('GET', place);
    if (status === 'failed') throw new Error(`The deployment has failed: ${status_reason ?? ''}`);
    await sleep(ASKED_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

export async function untilServed(
  { port }: Stage,
  host: string,
  greeting: string,
  withinMs = GIVE_UP_MS,
): Promise<void> {
  for (
    const end = Date.now() + withinMs;
    Date.now() < end;
    await sleep(VISIT_PAUSE_MS)
  ) {
    const { status, body } = await visit(port, host, '/about');
    if (status === 200 && body.includes(greeting)) return;
  }
  throw new Error(`"${greeting}" was not seen within ${withinMs} ms`);
}

/** Instances outlive the service: they go before it does. */
export async function removeAll({ api, directory }: Stage): Promise<void> {
  for (;;) {
    const { data } = await api.call<{ data: { id: string }[] }>('GET', '/v2/applications?limit=100');
    if (!data.length) break;
    for (const { id } of data) await api.call('DELETE', `/v2/applications/${id}`);
  }
  for (
    const end = Date.now() + GIVE_UP_MS;
    Date.now() < end && processesWith(path.join(directory, 'runtime/units')).length;
  )
    await sleep(500);
}

export function deployRow(name: string, found: Deployed[]): string {
  const cells = (['total', 'source', 'build', 'start'] as const).map((part) =>
    seconds(median(found.map((one) => one[part]))),
  );
  return `| ${name} | ${cells.join(' | ')} |`;
}

export function seconds(ms: number): string {
  return (ms / 1000).toFixed(2);
}
