// The service as a test sees it: on a database of its own, reached over HTTP. Every REST answer is checked against the
// OpenAPI document.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadConfig, type Config } from '../../core/config';
import { configIn } from './config';
import { createLog } from '../../core/log/log';
import { memoize } from '../../core/memoize';
import { named } from '../../db/statement';
import { version } from '../../package.json';
import { openapiDocument } from '../../rest/openapi';
import { firstBoot } from '../../server/first_boot';
import { openPlatform, type Platform } from '../../server/platform/platform';
import { buildFaces, startService as serve } from '../../server/service';
import { createTestDatabase } from './databases/database';
import { responseChecker, type ResponseChecker } from './contract/openapi_check';
import { httpCall } from './http_call';
import { mintKey, newProject } from './service_rows';

/* oxlint-disable typescript/no-explicit-any -- the OpenAPI check types what the service sends */
export interface Answer {
  status: number;
  headers: Headers;
  body: any;
  text: string;
}

export interface CallOptions {
  body?: unknown;
  /** A token; null sends none. Default: the owner's key. */
  key?: string | null;
  /** Value of X-Svc-Project; null sends none. Default: the first project. */
  project?: string | null;
  headers?: Record<string, string>;
  /** Sent as it is instead of `body`. */
  raw?: string | Buffer;
}

export interface KeyOptions {
  kind?: 'personal' | 'project';
  scopes?: string[];
  project_ids?: string[] | null;
  project_id?: string;
  expires_at?: string | null;
  /** Default true. */
  may_destroy?: boolean;
  /** A new user with this role in the first project; without it the owner. */
  role?: 'owner' | 'developer' | 'viewer';
}

export interface TestService {
  url: string;
  adminUrl: string;
  key: string;
  project: string;
  platform: Platform;
  dataDir: string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  graphql(
    query: string,
    variables?: Record<string, unknown>,
    options?: CallOptions & { cookie?: string },
  ): Promise<Answer & { data: any; errors: any[] | undefined }>;
  mintKey(options?: KeyOptions): Promise<string>;
  /** Another project of the owner (or of a new account with `stranger`), without resources. */
  newProject(options?: { stranger?: boolean }): Promise<{ id: string; key: string }>;
  /** Rows of a query on the service's database. */
  sql<Row = any>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Gets a resource until its status is settled. */
  settle(path: string, options?: CallOptions): Promise<any>;
  close(): Promise<void>;
}

const TRANSITIONAL = new Set([
  'provisioning',
  'updating',
  'upgrading',
  'restoring',
  'restarting',
  'starting',
  'stopping',
  'resizing',
  'promoting',
  'building',
  'deploying',
  'scaling',
]);

export async function startService(
  options: { worker?: boolean; settings?: Record<string, string> } = {},
): Promise<TestService> {
  const database = await createTestDatabase();
  const dataDir = mkdtempSync(path.join(tmpdir(), 'platform-test-'));
  const set = loadConfig({
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    // Without a worker nobody binds it.
    DNS_PORT: options.worker ? '0' : '5300',
    SMTP_PORTS: options.worker ? '0' : '2525',
    MX_PORT: '0',
    REGISTRY_PORT: options.worker ? '0' : '5000',
    S3_PORT: options.worker ? '0' : '9000',
    LOG_LEVEL: 'error',
    // A deletion frees the host at once; test/bin/ keeps what was deleted.
    RETENTION_OF_DELETED_DAYS: '0',
    // Tests clean up as fast as they can, all with one key.
    DESTROYING_CALLS_PER_MINUTE: '1000000',
    VOLUME_DRIVER: 'directory',
    // Each service has a data directory of its own, and would download another one.
    PREFERRED_NODE: 'host',
    PREFERRED_PYTHON: 'host',
    NETWORK: process.env.TEST_NETWORK ?? 'shared',
    WORKER: options.worker ? 'in_process' : 'separate',
    RATE_LIMIT_READ: '1000000',
    RATE_LIMIT_WRITE: '1000000',
    RATE_LIMIT_DEPLOY: '1000000',
    RATE_LIMIT_FAILED_AUTH: '1000000',
    SHUTDOWN_GRACE_SECONDS: '2',
    GIT_OAUTH_CLIENTS: 'gitlab=test-client:test-secret',
    ...options.settings,
  });
  const config: Config = {
    ...set,
    ...{ ingressProcess: 'in_process', dnsProcess: 'in_process' },
    // Nobody does what an answer would wait for.
    operationWaitSeconds: options.worker ? set.operationWaitSeconds : 0,
    ...configIn(options.settings ?? {}),
  };
  const opened: (() => Promise<void>)[] = [
    database.drop,
    async () => rmSync(dataDir, { recursive: true, force: true }),
  ];
  const close = async (): Promise<void> => {
    for (const step of opened.reverse()) await step();
  };
  try {
    return await open(config, dataDir, opened, close);
  } catch (error) {
    // What stays open would keep the test runner from ending.
    await close();
    throw error;
  }
}

async function open(
  config: Config,
  dataDir: string,
  opened: (() => Promise<void>)[],
  close: () => Promise<void>,
): Promise<TestService> {
  const platform = await openPlatform(config, createLog(config.logLevel));
  opened.push(() => platform.close());
  const service = await serve(platform);
  opened.push(() => service.close());
  const first = await firstBoot(platform);
  if (!first) throw new Error('the test database was not empty');
  return assemble(platform, {
    url: `http://127.0.0.1:${service.config.port}`,
    adminUrl: `http://127.0.0.1:${service.adminPort}`,
    dataDir,
    key: first.key,
    project: first.project_id,
    close,
  });
}

/** The document is the same for all services of a process but for their address, which no check looks at. */
const documented = memoize(async () => {
  const { core } = buildFaces();
  return responseChecker(openapiDocument({ ...core, baseUrl: 'http://127.0.0.1', version }));
});

type Known = Pick<TestService, 'url' | 'adminUrl' | 'dataDir' | 'key' | 'project' | 'close'>;

async function assemble(platform: Platform, known: Known): Promise<TestService> {
  const check = await documented();
  const sql = <Row>(text: string, values: unknown[] = []): Promise<Row[]> =>
    platform.database.query<Row>(named(text), values);
  const call = caller(known, check);
  const service: TestService = {
    ...known,
    platform,
    call,
    sql,
    graphql: (query, variables, options) => graphql(known, query, variables, options),
    mintKey: (options) => mintKey(sql, known, options),
    newProject: (options) => newProject(sql, known, options?.stranger === true),
    async settle(place, options) {
      for (let turn = 0; turn < 200; turn += 1) {
        const { body } = await call('GET', place, options);
        if (!TRANSITIONAL.has(body.status)) return body;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      throw new Error(`${place} does not settle`);
    },
  };
  return service;
}

function headersOf(known: Known, options: CallOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  const key = options.key === undefined ? known.key : options.key;
  const project = options.project === undefined ? known.project : options.project;
  if (key !== null) headers.Authorization = `Bearer ${key}`;
  if (project !== null) headers['X-Svc-Project'] = project;
  if (options.body !== undefined) headers['Content-Type'] = 'application/json';
  return { ...headers, ...options.headers };
}

function caller(known: Known, check: ResponseChecker): TestService['call'] {
  return async (method, place, options = {}) => {
    const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const { status, headers, text } = await httpCall(known.url + place, {
      method,
      headers: headersOf(known, options),
      body,
    });
    const json = /json/.test(headers.get('content-type') ?? '');
    const answer = { status, headers, text, body: json && text ? JSON.parse(text) : null };
    const mistakes = check(method, place, answer);
    if (mistakes.length)
      throw new Error(
        `${method} ${place} answered ${answer.status} against the OpenAPI document:\n${mistakes.join('\n')}\n` +
          `${text.slice(0, 2000)}`,
      );
    return answer;
  };
}

async function graphql(
  known: Known,
  query: string,
  variables: Record<string, unknown> = {},
  options: CallOptions & { cookie?: string } = {},
): ReturnType<TestService['graphql']> {
  const headers: Record<string, string> = { ...headersOf(known, options), 'Content-Type': 'application/json' };
  if (options.cookie !== undefined) {
    delete headers.Authorization;
    headers.Cookie = options.cookie;
  }
  const answer = await httpCall(`${known.url}/graphql`, {
    method: 'POST',
    headers: { ...headers, ...options.headers },
    body: JSON.stringify({ query, variables }),
  });
  const body = JSON.parse(answer.text);
  return { ...answer, body, data: body.data, errors: body.errors };
}
