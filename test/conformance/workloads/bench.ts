// What the suite of workloads needs of an engine, and the applications that it deploys: shell and busybox, so that
// nothing has to be downloaded.
import http from 'node:http';
import type { DeployService, TestApplication } from '../../support/deployments/deploy';
import type { GitFiles } from '../../support/git/git_server';
import { waitFor } from '../../support/wait_for';

/** What engines do differently by design. Everything else is the same on all of them. */
interface WorkloadCapabilities {
  /** Instances have the files that a release command has written. Not where they start from an image. */
  releaseCommandWritesFiles: boolean;
  /** `SVC_INSTANCE_ID` is the `id` of the instance. Not where the instances of a release share their environment. */
  namesInstances: boolean;
}

export interface WorkloadBench {
  capabilities: WorkloadCapabilities;
  service(): DeployService;
  /** Names of what is left of any of these resources outside of the database. */
  leftOf(ids: readonly string[]): Promise<string[]>;
}

export interface InstanceBody {
  id: string;
  status: string;
  process_type: string;
  restart_count: number;
}

/** Starting and stopping, on a busy machine. */
export const CHANGED_WITHIN_MS = 90_000;

const answer = (body: string): string => `printf 'Content-Type: text/plain\\r\\n\\r\\n'\n${body}\n`;

/** Serves a directory, and ends at SIGTERM also where it is the first process of a container. */
export const webProgram = (directory: string): string =>
  `busybox httpd -f -p "$PORT" -h ${directory} -c "$PWD/httpd.conf" &\ntrap 'kill $!; exit 0' TERM\nwait $!\n`;

/** A site that says its version at `/`, and more of itself below `/cgi-bin/`. */
export function siteOf(version: string, types = ''): GitFiles {
  return {
    Procfile: `web: sh web.sh\n${types}`,
    'web.sh': webProgram('site'),
    'httpd.conf': '*.cgi:/bin/sh\n',
    'version.txt': version,
    'site/index.html': version,
    'site/cgi-bin/slow.cgi': `sleep 1\n${answer(`printf 'slow ${version}'`)}`,
    'site/cgi-bin/env.cgi': answer('env'),
    'site/cgi-bin/instance.cgi': answer('printf "$SVC_INSTANCE_ID"'),
    'site/cgi-bin/file.cgi': answer('cat ../../released.txt'),
  };
}

export async function instancesOf(application: TestApplication): Promise<InstanceBody[]> {
  return (await application.get('/instances')).data;
}

/** Waits until exactly so many instances of a process type are there, and all of them run. */
export function onlyRunning(application: TestApplication, type: string, count: number): Promise<InstanceBody[]> {
  return waitFor(
    `${count} running instances of ${type}`,
    async () => {
      const found = (await instancesOf(application)).filter(({ process_type }) => process_type === type);
      return found.length === count && found.every(({ status }) => status === 'running') && found;
    },
    CHANGED_WITHIN_MS,
  );
}

export async function scale(application: TestApplication, type: string, instances: number): Promise<void> {
  const processes = (await application.get('/processes')).data as { id: string; type: string }[];
  await application.post(`/processes/${processes.find((one) => one.type === type)?.id}/scale`, { instances });
}

export function statusIs(application: TestApplication, status: string): Promise<unknown> {
  return waitFor(
    `${application.name} is ${status}`,
    async () => (await application.get()).status === status,
    CHANGED_WITHIN_MS,
  );
}

/** @throws Error with its reason where the deployment does not become active */
export async function deployed(application: TestApplication): Promise<{ id: string }> {
  const { id } = await application.ask();
  const { status, status_reason } = await application.ended(id, CHANGED_WITHIN_MS);
  expect([status, status_reason]).toEqual(['active', null]);
  return { id };
}

/**
 * How often a program that writes to /data/starts.txt has started. Where the answer is not 200, it is returned as a
 * text: pages of the ingress tell of a start, too.
 */
export async function startsOf(application: TestApplication): Promise<number | string> {
  const { status, body } = await application.visit('/starts.txt');
  return status === 200 ? body.split('start').length - 1 : `${status} ${body}`;
}

/** The environment of its instances, as a request sees it. */
export async function environmentOf(application: TestApplication): Promise<Map<string, string>> {
  const { body } = await application.visit('/cgi-bin/env.cgi');
  return new Map(
    body.split('\n').map((line) => [line.split('=')[0] ?? '', line.slice(line.indexOf('=') + 1)] as const),
  );
}

/** One request on a connection of its own. @returns the body, and the cookie that was set */
export function visitWith(
  bench: WorkloadBench,
  { host, path, cookie }: { host: string; path: string; cookie?: string },
): Promise<{ body: string; cookie: string | undefined }> {
  const { ingressPort: port } = bench.service().platform.config;
  const headers = { Host: host, ...(cookie !== undefined && { Cookie: cookie }) };
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      let body = '';
      response.on('data', (text: Buffer) => (body += text.toString()));
      const [set] = response.headers['set-cookie'] ?? [];
      response.on('end', () => resolve({ body, cookie: set?.split(';')[0] }));
    });
    request.on('error', reject);
  });
}
