// The service as a test sees it: on a database of its own, reached over HTTP. Every REST answer is checked against the
// OpenAPI document.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadConfig, type Config } from '../../core/config';
import { mintId } from '../../core/ids';
import { createLog } from '../../core/log';
import { memoize } from '../../core/memoize';
import { scopes as allScopes } from '../../core/scopes';
import { mintToken } from '../../core/tokens';
import { named } from '../../db/statement';
import { version } from '../../package.json';
import { openapiDocument } from '../../rest/openapi';
import { firstBoot } from '../../server/first_boot';
import { openPlatform, type Platform } from '../../platform/platform';
import { buildFaces, startService as serve } from '../../server/service';
import { createTestDatabase } from './database';
import { responseChecker, type ResponseChecker } from './openapi_check';

/* eslint-disable @typescript-eslint/no-explicit-any -- the OpenAPI check types what the service sends */
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
  const config = loadConfig({
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    LOG_LEVEL: 'error',
    VOLUME_DRIVER: 'directory',
    WORKER: options.worker ? 'in_process' : 'separate',
    RATE_LIMIT_READ: '1000000',
    RATE_LIMIT_WRITE: '1000000',
    RATE_LIMIT_DEPLOY: '1000000',
    RATE_LIMIT_FAILED_AUTH: '1000000',
    SHUTDOWN_GRACE_SECONDS: '2',
    // Nobody does what an answer would wait for.
    OPERATION_WAIT_SECONDS: options.worker ? '20' : '0',
    ...options.settings,
  });
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
  const { core } = await buildFaces();
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
    const response = await fetch(known.url + place, {
      method,
      headers: headersOf(known, options),
      body: body as never,
      redirect: 'manual',
    });
    const text = await response.text();
    const json = /json/.test(response.headers.get('content-type') ?? '');
    const answer = {
      status: response.status,
      headers: response.headers,
      text,
      body: json && text ? JSON.parse(text) : null,
    };
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
  const response = await fetch(`${known.url}/graphql`, {
    method: 'POST',
    headers: { ...headers, ...options.headers },
    body: JSON.stringify({ query, variables }),
  });
  const text = await response.text();
  const body = JSON.parse(text);
  return { status: response.status, headers: response.headers, text, body, data: body.data, errors: body.errors };
}

type Run = <Row>(text: string, values?: unknown[]) => Promise<Row[]>;

async function mintKey(sql: Run, known: Known, options: KeyOptions = {}): Promise<string> {
  const { kind = 'personal', scopes = Object.keys(allScopes), project_ids = null, expires_at = null } = options;
  const { token, prefix, hash } = mintToken(kind);
  const user =
    kind === 'project' ? null : options.role ? await newUser(sql, known, options.role) : (await owner(sql, known)).id;
  await sql(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, project_id, scopes, project_ids, expires_at)
      values ($1, $2, 'Test key', $3, $4, $5, $6, $7, $8, $9)`,
    [
      mintId('key'),
      kind,
      prefix,
      hash,
      user,
      kind === 'project' ? (options.project_id ?? known.project) : null,
      kind === 'project' ? null : scopes,
      project_ids,
      expires_at,
    ],
  );
  return token;
}

async function owner(sql: Run, known: Known): Promise<{ id: string; account_id: string }> {
  const [row] = await sql<{ id: string; account_id: string }>(
    `select u.id, u.account_id from users u join members m on m.user_id = u.id
      where m.project_id = $1 and m.role = 'owner' order by u.id limit 1`,
    [known.project],
  );
  return row as { id: string; account_id: string };
}

async function newUser(sql: Run, known: Known, role: string): Promise<string> {
  const { account_id } = await owner(sql, known);
  const id = mintId('usr');
  await sql('insert into users (id, account_id, email, name) values ($1, $2, $3, $4)', [
    id,
    account_id,
    `${id}@example.com`,
    'Test user',
  ]);
  await sql('insert into members (project_id, user_id, role) values ($1, $2, $3)', [known.project, id, role]);
  return id;
}

async function newProject(sql: Run, known: Known, stranger: boolean): Promise<{ id: string; key: string }> {
  let user = await owner(sql, known);
  if (stranger) {
    user = { id: mintId('usr'), account_id: mintId('acc') };
    await sql('insert into accounts (id, name) values ($1, $2)', [user.account_id, 'Other']);
    await sql('insert into users (id, account_id, email, name) values ($1, $2, $3, $4)', [
      user.id,
      user.account_id,
      `${user.id}@example.com`,
      'Stranger',
    ]);
  }
  const id = mintId('prj');
  await sql(
    `insert into projects (id, account_id, name, default_region, created_at, updated_at)
      values ($1, $2, 'Other project', 'local', now(), now())`,
    [id, user.account_id],
  );
  await sql(`insert into members (project_id, user_id, role) values ($1, $2, 'owner')`, [id, user.id]);
  const { token, prefix, hash } = mintToken('personal');
  await sql(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, scopes)
      values ($1, 'personal', 'Other key', $2, $3, $4, $5)`,
    [mintId('key'), prefix, hash, user.id, Object.keys(allScopes)],
  );
  return { id, key: token };
}
