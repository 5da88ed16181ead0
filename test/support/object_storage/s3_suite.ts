// What ceph/s3-tests needs beside an S3 endpoint. The suite takes new buckets to be as they were before April 2023,
// without a public access block and with ACLs: a proxy in front of the endpoint takes both away, as accounts of AWS
// that run the suite have to. With a gateway, and for buckets with a canned ACL, it turns CreateBucket into a call of
// the API of the platform. Everything else goes through.
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EMPTY_SHA256, signedHeaders } from '../../../core/protocols/sigv4';
import { createAsBefore, ONCE } from './s3_suite_buckets';
import type { S3Service } from './s3';
import type { TestService } from '../service';
import { judge, knownFailures, type Outcome } from '../runner/suites';

const FILES = ['s3tests/functional/test_s3.py', 's3tests/functional/test_headers.py'];

/** Marks of the suite that are about services beside S3, or of Ceph's own, or of the cloud behind it. */
const MARKS = [
  ...['bucket_logging', 'bucket_logging_cleanup', 'cloud_transition', 'cloud_restore', 'appendobject', 'iam_account'],
  ...['iam_user', 'iam_role', 'iam_tenant', 'iam_cross_account', 'auth_aws2', 'target_by_bucket'],
];
/** An expression of pytest. */
const SUITE_MARKS = `not (${MARKS.join(' or ')})`;

/** A project with a key that may do everything in it. */
export interface Owner {
  projectId: string;
  /** Of the API. */
  apiKey: string;
  accessKeyId: string;
  secretAccessKey: string;
}

export interface SuiteEndpoint {
  port: number;
  owners: Record<'main' | 'alt' | 'tenant', Owner>;
  close(): Promise<void>;
}

/** @param target address of the engine; without one, that of the service */
export async function openSuiteEndpoint(world: S3Service, target = world.endpoint): Promise<SuiteEndpoint> {
  const { service } = world;
  const owner = async (): Promise<Owner> => mintAccessKey(service, await service.newProject({ stranger: true }));
  const owners = { main: await owner(), alt: await owner(), tenant: await owner() };
  const byKey = new Map(Object.values(owners).map((one) => [one.accessKeyId, one]));
  const server = createServer((request, response) => {
    const [, name] = /^\/([^/?]+)\/?$/.exec(request.url ?? '') ?? [];
    const caller = byKey.get(/(?:Credential=|AWS )([^/:]+)/.exec(request.headers.authorization ?? '')?.[1] ?? '');
    const isOfApi = name !== undefined && caller !== undefined && ['PUT', 'DELETE'].includes(request.method ?? '');
    const isNative = target === world.endpoint && !['public-read'].includes(String(request.headers['x-amz-acl']));
    const answer =
      isOfApi && isNative
        ? createAsBefore(target, caller, request, response)
        : isOfApi
          ? askApi(world, { owner: caller, target }, name, request, response)
          : Promise.resolve('to the endpoint');
    answer
      .then((left) => void (left === 'to the endpoint' && passOn(target, request, response)))
      .catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    owners,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function mintAccessKey(service: TestService, project: { id: string; key: string }): Promise<Owner> {
  const { status, body, text } = await service.call('POST', '/v2/bucket_access_keys', {
    ...{ key: project.key, project: project.id },
    body: { name: 'suite', grants: [{ permission: 'full' }] },
  });
  if (status !== 201) throw new Error(text);
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey } = body;
  return { projectId: project.id, apiKey: project.key, accessKeyId, secretAccessKey };
}

async function askApi(
  { service }: S3Service,
  { owner, target }: { owner: Owner; target: string },
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<'answered' | 'to the endpoint'> {
  const as = { key: owner.apiKey, project: owner.projectId };
  const { headers } = request;
  const succeed = (status: number, more = {}): 'answered' => {
    response.writeHead(status, more).end();
    return 'answered';
  };
  const fail = (status: number, code: string): 'answered' => {
    response.writeHead(status, { 'content-type': 'application/xml' });
    response.end(`<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code></Error>`);
    return 'answered';
  };
  if (request.method === 'DELETE') {
    const found = await service.call('GET', `/v2/buckets?name=${encodeURIComponent(name)}`, as);
    const id = found.body?.data?.[0]?.id as string | undefined;
    if (id === undefined) return 'to the endpoint';
    request.resume();
    const { status, body } = await service.call('DELETE', `/v2/buckets/${id}`, as);
    if (status === 204) {
      await bucketAnswers(404, target, owner, name);
      return succeed(204);
    }
    return fail(409, body.code === 'bucket_not_empty' ? 'BucketNotEmpty' : 'OperationAborted');
  }
  const acl = headers['x-amz-acl'] ?? 'private';
  const strange = Object.keys(headers).find((one) => /^x-amz-(grant|object-ownership)/.test(one));
  request.resume();
  if (strange !== undefined || !['private', 'public-read'].includes(String(acl))) return fail(501, 'NotImplemented');
  const body = {
    name,
    access: acl === 'public-read' ? 'public_read' : 'private',
    ...(headers['x-amz-bucket-object-lock-enabled']?.toString().toLowerCase() === 'true' && { object_lock: true }),
  };
  const made = await service.call('POST', '/v2/buckets', { ...as, body });
  if (made.status === 201) {
    await bucketAnswers(200, target, owner, name);
    return succeed(200, { location: `/${name}` });
  }
  if (made.body.code === 'engine_unavailable') return fail(501, 'NotImplemented');
  if (made.body.code !== 'name_taken') return fail(400, 'InvalidBucketName');
  const own = await service.call('GET', `/v2/buckets?name=${encodeURIComponent(name)}`, as);
  return fail(409, own.body.data.length ? 'BucketAlreadyOwnedByYou' : 'BucketAlreadyExists');
}

/** The loop of the platform makes a bucket at a gateway, and its rights, and removes it, a moment after the API. */
async function bucketAnswers(status: number, target: string, owner: Owner, name: string): Promise<void> {
  const { accessKeyId, secretAccessKey } = owner;
  const url = new URL(`${target}/${name}`);
  for (const end = Date.now() + 20_000; Date.now() < end; await sleep(50)) {
    const credentials = { accessKeyId, secretAccessKey };
    const headers = signedHeaders({ method: 'HEAD', url, payloadHash: EMPTY_SHA256, region: 'local', credentials });
    if ((await fetch(url, { method: 'HEAD', headers })).status === status) return;
  }
}

function passOn(target: string, request: IncomingMessage, response: ServerResponse): void {
  const { hostname, port } = new URL(target);
  const { method, url: path, rawHeaders } = request;
  const onward = send({ hostname, port, method, path, headers: rawHeaders as never, setHost: false, agent: ONCE });
  onward.on('response', (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders);
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  onward.on('continue', () => response.writeContinue());
  onward.on('error', () => response.destroy());
  response.on('close', () => {
    onward.destroy();
    // A client reads an early answer once all of its body has gone.
    request.unpipe().resume();
  });
  request.pipe(onward);
}

/** The file that S3TEST_CONF names. Sections of what is not offered are there, with keys of nobody. */
function suiteConfig({ port, owners }: SuiteEndpoint, region: string): string {
  const nobody = {
    accessKeyId: 'PKNOBODYNOBODYNOBODY',
    secretAccessKey: 'x'.repeat(40),
    projectId: 'nobody',
    apiKey: '',
  };
  const section = (name: string, owner: Owner, more: string[] = []): string[] => [
    ...[`[${name}]`, `access_key = ${owner.accessKeyId}`, `secret_key = ${owner.secretAccessKey}`],
    ...[`user_id = ${owner.projectId}`, 'display_name = nobody', 'email = nobody@example.com', ...more],
  ];
  return [
    ...['[DEFAULT]', 'host = 127.0.0.1', `port = ${port}`, 'is_secure = False', 'ssl_verify = False'],
    ...['[fixtures]', 'bucket prefix = s3t-{random}-', 'iam name prefix = s3t-', 'iam path prefix = /s3t/'],
    ...section('s3 main', owners.main, [`api_name = ${region}`]),
    ...section('s3 alt', owners.alt),
    ...section('s3 tenant', owners.tenant, ['tenant = none']),
    ...['iam', 'iam root', 'iam alt root'].flatMap((name) => section(name, nobody)),
    '',
  ].join('\n');
}

interface SuiteOptions {
  table: string;
  /** Of the endpoints. */
  region: string;
  directory: string;
  /** Tests that are left out. */
  without?: readonly string[];
}

/**
 * Runs the suite and holds it against a table: what is offered passes, but for tests that the table names.
 */
export async function expectWhatIsOffered(
  place: (name: string) => string,
  endpoints: readonly SuiteEndpoint[],
  { table, region, directory, without = [] }: SuiteOptions,
): Promise<void> {
  const only = process.env.SUITES_ONLY;
  const chosen = [only && `(${only})`, without.length && `not (${without.join(' or ')})`].filter(Boolean).join(' and ');
  const options = { marks: SUITE_MARKS, only: chosen, region, directory };
  const { outcomes, reasons } = await runSuite(place, endpoints, options);
  const { offered, notOffered, unexpected, stale, unknown } = judge(outcomes, knownFailures(table));
  const all = offered.passed + offered.failed.length;
  process.stdout.write(
    `${outcomes.size} tests; of ${all} about what is offered ${offered.passed} pass; ${notOffered} are about ` +
      `what is not (${directory})\n`,
  );
  expect(unexpected.map((name) => `${name}: ${reasons.get(name) ?? ''}`)).toEqual([]);
  expect(offered.passed / all).toBeGreaterThanOrEqual(0.95);
  if (only) return;
  expect([stale, unknown]).toEqual([[], []]);
}

/** Runs the suite, in as many processes as there are endpoints: tests look at all buckets of their owner. */
async function runSuite(
  place: (name: string) => string,
  endpoints: readonly SuiteEndpoint[],
  options: { marks: string; only: string; region: string; directory: string },
): Promise<{ outcomes: Map<string, Outcome>; reasons: Map<string, string> }> {
  const { marks, only, region, directory } = options;
  const chosen = ['-m', marks, ...(only ? ['-k', only] : []), ...FILES];
  const pytest = async (name: string, endpoint: SuiteEndpoint, words: readonly string[]): Promise<string> => {
    const file = path.join(directory, `${name}.conf`);
    writeFileSync(file, suiteConfig(endpoint, region), { mode: 0o600 });
    const env = { ...process.env, S3TEST_CONF: file, PYTHONDONTWRITEBYTECODE: '1', COLUMNS: '300' };
    const options = { cwd: place('s3-tests'), env, maxBuffer: 2 ** 28 };
    return new Promise((resolve, reject) => {
      const all = ['-m', 'pytest', '-p', 'no:cacheprovider', '-q', '-o', 'addopts=', ...words];
      // Tests that failed give it a code of its own.
      execFile(place('venv/bin/python'), all, options, (error, stdout, stderr) =>
        error && error.code !== 1 ? reject(new Error(stderr || stdout)) : resolve(stdout),
      );
    });
  };
  const [first] = endpoints;
  const collected = await pytest('collected', first as SuiteEndpoint, ['--collect-only', ...chosen]);
  const ids = [...collected.matchAll(/^\S+\.py::\S+$/gm)].map(([id]) => id);
  const texts = await Promise.all(
    endpoints.map(async (endpoint, index) => {
      const own = ids.filter((_, number) => number % endpoints.length === index);
      if (!own.length) return '';
      const text = await pytest(`part-${index}`, endpoint, ['--tb=short', '-rA', ...own]);
      writeFileSync(path.join(directory, `part-${index}.txt`), text);
      return text;
    }),
  );
  return outcomesOf(texts.join('\n'));
}

/** @param text of `pytest -rA` */
export function outcomesOf(text: string): { outcomes: Map<string, Outcome>; reasons: Map<string, string> } {
  const outcomes = new Map<string, Outcome>();
  const reasons = new Map<string, string>();
  const words: Record<string, Outcome> = { PASSED: 'passed', XPASS: 'passed', FAILED: 'failed', ERROR: 'failed' };
  for (const [, word = '', name = '', why] of text.matchAll(
    /^(PASSED|XPASS|FAILED|ERROR|XFAIL|SKIPPED) \S*::(\S+)(?: - (.*))?$/gm,
  )) {
    // A test that passed and whose end failed has two lines.
    if (outcomes.get(name) === 'failed') continue;
    outcomes.set(name, words[word] ?? 'skipped');
    if (why) reasons.set(name, why);
  }
  return { outcomes, reasons };
}
