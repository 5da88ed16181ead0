// A service that really deploys: worker, runtime and ingress, with a Git server beside it.
import { existsSync, readdirSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { openLocalRuntime } from '../../../drivers/runtime/local';
import { startGitServer, type GitFiles, type GitServer } from '../git/git_server';
import { startService, type TestService } from '../service';
import { waitFor } from '../wait_for';

/* oxlint-disable typescript/no-explicit-any -- the OpenAPI check types what the service sends */
export interface DeployService extends TestService {
  git: GitServer;
  runtimeDir: string;
  /**
   * An application whose source is a new repository with these files. Settings are those of the API, quicker where it
   * matters.
   */
  application(files: GitFiles, settings?: object): Promise<TestApplication>;
  /** Deletes every application, and what they left would be found. */
  clear(): Promise<void>;
}

export interface TestApplication {
  id: string;
  name: string;
  host: string;
  push(files: GitFiles): string;
  /** Asks for a deployment and waits for its end. */
  deploy(body?: object): Promise<any>;
  /** Asks only. */
  ask(body?: object): Promise<any>;
  /** Waits until a deployment has ended. */
  ended(deploymentId: string, withinMs?: number): Promise<any>;
  get(place?: string): Promise<any>;
  post(place: string, body?: object): Promise<any>;
  visit(place?: string, method?: string): Promise<Visit>;
  /** Sends requests one after another in `lanes` until stopped. */
  traffic(place?: string, lanes?: number): Traffic;
  /** Messages of the log of a deployment, oldest first. */
  log(deploymentId: string): Promise<string[]>;
}

export interface Visit {
  status: number;
  body: string;
}

export interface Traffic {
  stop(): Promise<{ total: number; lost: string[]; seen: Set<string> }>;
}

/**
 * Short enough for a test: looks every 5 s, and a stop waits for 3 s. How long a good app may take is not cut: the
 * machine may be busy.
 */
export const QUICK = { health_check: { interval_seconds: 5, timeout_seconds: 4 }, run: { shutdown_grace_seconds: 3 } };
/** For what never gets healthy. Long enough for it to come up and be bad on a busy machine. */
export const GIVEN_UP_SOON = { health_check: { interval_seconds: 5, timeout_seconds: 4, grace_period_seconds: 8 } };

const ENDED = new Set(['active', 'superseded', 'failed', 'canceled']);

/** How long the end of all applications may take: their files are removed, of some a hundred thousand. */
const CLEARED_WITHIN_MS = 40_000;

export async function startDeployService(
  settings: Record<string, string> = {},
  clearedWithinMs = CLEARED_WITHIN_MS,
): Promise<DeployService> {
  const git = await startGitServer();
  const service = await startService({
    worker: true,
    settings: { ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1', ...settings },
  });
  const runtimeDir = service.platform.config.runtimeDir;
  const self: DeployService = {
    ...service,
    git,
    runtimeDir,
    application: (files, wanted = {}) => makeApplication(self, files, wanted),
    clear: () => clear(self, clearedWithinMs),
    async close() {
      await self.clear().finally(async () => {
        await service.close();
        await destroyUnits(runtimeDir);
        await git.close();
      });
    },
  };
  return self;
}

let count = 0;

/** What an application is made with; the service may be in another process. */
export interface Workplace extends Pick<DeployService, 'git' | 'call'> {
  platform: { config: { ingressPort: number } };
}

export async function makeApplication(service: Workplace, files: GitFiles, settings: object): Promise<TestApplication> {
  const name = `app-${(count += 1)}`;
  service.git.makeRepository(name, files);
  const made = await service.call('POST', '/v2/applications', {
    body: { name, source: { type: 'git', repository_url: service.git.url(name) } },
  });
  if (made.status !== 201) throw new Error(made.text);
  const handle = await configuredApplication(service, made.body, settings);
  return { ...handle, push: (changed) => service.git.commit(name, changed) };
}

/** An application that was made, with settings that are quicker where it matters. */
export async function configuredApplication(
  service: Omit<Workplace, 'git'>,
  { id, name, default_hostname: host }: { id: string; name: string; default_hostname: string },
  settings: object = {},
): Promise<Omit<TestApplication, 'push'>> {
  const set = await service.call('PATCH', `/v2/applications/${id}/settings`, { body: { ...QUICK, ...settings } });
  if (set.status !== 200) throw new Error(set.text);
  const post = async (place: string, body?: object): Promise<any> => {
    const answer = await service.call('POST', `/v2/applications/${id}${place}`, body ? { body } : {});
    if (answer.status >= 300) throw new Error(answer.text);
    return answer.body;
  };
  const get = async (place = ''): Promise<any> => (await service.call('GET', `/v2/applications/${id}${place}`)).body;
  const ended = (deployment: string, withinMs = 40_000): Promise<any> =>
    waitFor(
      `the end of ${deployment}`,
      async () => {
        const found = await get(`/deployments/${deployment}`);
        return ENDED.has(found.status) ? found : null;
      },
      withinMs,
    );
  const visit = (place = '/', method = 'GET'): Promise<Visit> =>
    visitHost(service.platform.config.ingressPort, host, place, method);
  return {
    ...{ id, name, host, post, get, ended, visit },
    ask: (body = {}) => post('/deployments', body),
    deploy: async (body = {}) => ended((await post('/deployments', body)).id),
    traffic: (place, lanes) => startTraffic(() => visit(place), lanes ?? 4),
    log: async (deployment) =>
      (await get(`/deployments/${deployment}/logs?order=asc&limit=1000`)).data.map(
        (line: { message: string }) => line.message,
      ),
  };
}

/** One request through the ingress, on a connection of its own. */
export function visitHost(port: number, host: string, place = '/', method = 'GET'): Promise<Visit> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      { host: '127.0.0.1', port, path: place, method, headers: { Host: host }, agent: false },
      (response) => {
        let body = '';
        response
          .setEncoding('utf8')
          .on('data', (text: string) => (body += text))
          .on('end', () => resolve({ status: response.statusCode as number, body }));
        response.on('error', reject);
      },
    );
    request.on('error', reject).end();
  });
}

function startTraffic(visit: () => Promise<Visit>, lanes: number): Traffic {
  const found = { total: 0, lost: [] as string[], seen: new Set<string>() };
  let stopped = false;
  const lane = async (): Promise<void> => {
    while (!stopped) {
      const { status, body } = await visit().catch((error: Error) => ({ status: 0, body: error.message }));
      found.total += 1;
      if (status === 200) found.seen.add(body);
      else found.lost.push(`${new Date().toISOString()} ${status} ${body.slice(0, 100)}`);
      await sleep(5);
    }
  };
  const running = Promise.all(Array.from({ length: lanes }, lane));
  return {
    async stop() {
      stopped = true;
      await running;
      return found;
    },
  };
}

async function clear(service: DeployService, withinMs: number): Promise<void> {
  const rows = await service.sql<{ id: string }>('select id from applications where deleted_at is null');
  await Promise.all(rows.map(({ id }) => service.call('DELETE', `/v2/applications/${id}`)));
  await waitFor(
    'the end of all applications',
    async () => (await service.sql('select 1 from applications')).length === 0,
    withinMs,
  );
}

/** Ends whatever a test that failed has left running. */
export async function destroyUnits(runtimeDir: string): Promise<void> {
  const directory = path.join(runtimeDir, 'units');
  if (!existsSync(directory) || !readdirSync(directory).length) return;
  const runtime = await openLocalRuntime({
    directory,
    ports: [20_000, 20_000],
    sandbox: 'auto',
    tenantUidBase: 700_000,
  });
  for (const id of await runtime.list()) await runtime.destroy(id, driverContext(20_000));
  await runtime.close();
}

/** What is left of applications on the host. */
export function leftOvers(runtimeDir: string): string[] {
  const names = (folder: string): string[] =>
    existsSync(path.join(runtimeDir, folder))
      ? readdirSync(path.join(runtimeDir, folder)).map((name) => `${folder}/${name}`)
      : [];
  return ['units', 'releases', 'caches', 'mirrors']
    .flatMap(names)
    .filter((name) => !path.basename(name).startsWith('.'));
}
