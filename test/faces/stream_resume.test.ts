// Subscriptions that are cut and resume after a position: every row once, whatever was written meanwhile.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionResult } from 'graphql';
import { createClient } from 'graphql-sse';
import { sha256 } from '../../core/accounts/tokens';
import { appendLogLines } from '../../models/applications/log_line';
import { startService, type TestService } from '../support/service';
import { bearer, ENDS_WITHIN_MS, makeTarget, openStream, personalKey, type Target } from '../support/contract/streams';

jest.setTimeout(120_000);

let service: TestService;
let target: Target;
beforeAll(async () => {
  service = await startService();
  target = await makeTarget(service, service.project, service.key);
});
afterAll(() => service.close());

interface Row {
  __typename?: 'Activity' | 'ApplicationLogLine';
  position: string;
  message?: string;
  resource?: { name: string };
}

interface Asked {
  query: string;
  variables: Record<string, unknown>;
  /** null: none. */
  key?: string | null;
}

type Result = ExecutionResult<Record<string, Row>>;

/** Results of a subscription until one is the last that is wanted, or until it ends. */
async function results(
  { query, variables, key = service.key }: Asked,
  isLast: (row: Row) => boolean,
): Promise<Result[]> {
  const headers = { 'X-Svc-Project': service.project, ...(key && bearer(key)) };
  const client = createClient({ url: `${service.url}/graphql`, headers, retryAttempts: 0 });
  const found: Result[] = [];
  for await (const result of client.iterate<Record<string, Row>>({ query, variables })) {
    found.push(result as Result);
    const [row] = Object.values(result.data ?? {});
    if (row && isLast(row)) break;
  }
  client.dispose();
  return found;
}

/** Rows up to the last that is wanted. */
async function follow(
  query: string,
  variables: Record<string, unknown>,
  isLast: (row: Row, count: number) => boolean,
): Promise<Row[]> {
  const rows: Row[] = [];
  const found = await results({ query, variables }, (row) => isLast(row, rows.push(row)));
  expect(found.flatMap(({ errors = [] }) => errors)).toEqual([]);
  return rows;
}

/** Extensions of the error that a subscription begins and ends with. */
async function refusal(asked: Asked): Promise<Record<string, unknown> | undefined> {
  const found = await results(asked, () => true);
  expect(found).toEqual([expect.objectContaining({ errors: [expect.anything()] })]);
  return found[0]?.errors?.[0]?.extensions;
}

const LOG = `subscription ($id: ID!, $after: String) {
  followApplicationLogs(id: $id, after: $after) { position message } }`;
const STEPS = `subscription ($id: ID!, $deployment: ID!, $after: String) {
  followDeploymentLogs(id: $id, deployment_id: $deployment, after: $after) { position message } }`;
const ACTIVITY = `subscription ($id: ID!, $after: String) {
  followProjectActivity(id: $id, action: "volume.created", after: $after) { position resource { name } } }`;
const PROJECT = `subscription ($id: ID!, $application: ID!, $after: String) {
  followProject(id: $id, application_id: $application, action: "volume.created", source: app, after: $after) {
    __typename
    ... on Activity { position resource { name } }
    ... on ApplicationLogLine { position message }
  }
}`;

const ofProject = ({ project, application }: Target): Record<string, string> => ({ id: project, application });

const newTarget = (): Promise<Target> => makeTarget(service, service.project, service.key);

const writeLines = (of: Target, messages: string[], step?: 'build'): Promise<void> =>
  appendLogLines(
    service.platform.database,
    messages.map((message) => ({
      project_id: of.project,
      application_id: of.application,
      ...(step && { step, deployment_id: of.deployment }),
      source: 'app',
      message,
    })),
  );

async function makeVolume(name: string): Promise<void> {
  const { status } = await service.call('POST', '/v2/volumes', { body: { name, size_gb: 1 } });
  expect(status).toBe(201);
}

const textOf = ({ message, resource }: Row): string => message ?? String(resource?.name);
const is =
  (text: string) =>
  (row: Row): boolean =>
    textOf(row) === text;
const texts = (rows: Row[]): string[] => rows.map(textOf);
const ofType = (rows: Row[], type: Row['__typename']): string[] =>
  texts(rows.filter(({ __typename }) => __typename === type));
const numbered = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`);

test.each<[string, string, (of: Target) => Record<string, string>, (of: Target, text: string) => Promise<void>]>([
  ['log-of-an-application', LOG, ({ application: id }) => ({ id }), (of, text) => writeLines(of, [text])],
  [
    'log-of-a-deployment',
    STEPS,
    ({ application: id, deployment }) => ({ id, deployment }),
    (of, text) => writeLines(of, [text], 'build'),
  ],
  ['activity', ACTIVITY, ({ project: id }) => ({ id }), (_, text) => makeVolume(text)],
])('%s: a subscription resumes after any row', async (name, query, variablesOf, write) => {
  const variables = variablesOf(target);
  const expected = numbered(name, 4);
  for (const text of expected) await write(target, text);
  const rows = (await follow(query, variables, is(`${name}-3`))).slice(-4);
  expect(texts(rows)).toEqual(expected);
  await write(target, `${name}-later`);
  for (const [index, { position }] of rows.entries()) {
    const rest = await follow(query, { ...variables, after: position }, is(`${name}-later`));
    expect(texts(rest)).toEqual([...expected.slice(index + 1), `${name}-later`]);
  }
});

describe('activity and log in one stream', () => {
  test('begins with the newest rows of both in the order of their times, and resumes after any of them', async () => {
    const own = await newTarget();
    await makeVolume('both-a');
    await writeLines(own, ['both-1', 'both-2']);
    await makeVolume('both-b');
    await writeLines(own, ['both-3']);
    const rows = await follow(PROJECT, ofProject(own), is('both-3'));
    expect(texts(rows).slice(-5)).toEqual(['both-a', 'both-1', 'both-2', 'both-b', 'both-3']);
    await writeLines(own, ['both-4']);
    await makeVolume('both-c');
    for (const [index, { position }] of rows.entries()) {
      const last = rows.slice(index + 1).length + 2;
      const rest = await follow(PROJECT, { ...ofProject(own), after: position }, (_, count) => count === last);
      expect(texts(rest)).toEqual([...texts(rows.slice(index + 1)), 'both-4', 'both-c']);
    }
  });

  test('what came before the cut is not lost, though no row of its list was sent before', async () => {
    const own = await newTarget();
    await writeLines(own, ['only-line']);
    const args = { ...ofProject(own), type: 'no-such-type' };
    const query = PROJECT.replace('action: "volume.created"', 'action: "volume.created", resource_id: $type').replace(
      '$after: String',
      '$after: String, $type: ID',
    );
    const volumes = numbered('between', 25);
    const [line] = await follow(query, { ...args, type: 'vol_01h455vb4pex5vsknk084sn02q' }, is('only-line'));
    for (const name of volumes) await makeVolume(name);
    // More than a stream begins with.
    const rest = await follow(PROJECT, { ...ofProject(own), after: line?.position }, is('between-24'));
    expect(texts(rest)).toEqual(volumes);
  });

  test('cut again and again while many write, gives every row once and keeps the order of each list', async () => {
    const own = await newTarget();
    await writeLines(own, ['begin']);
    const [begin] = (await follow(PROJECT, ofProject(own), is('begin'))).slice(-1);
    const [lines, volumes] = [numbered('line', 300), numbered('volume', 30)];
    const writing = Promise.all([
      (async () => {
        for (let index = 0; index < lines.length; index += 3) {
          await writeLines(own, lines.slice(index, index + 3));
          await sleep(10);
        }
      })(),
      (async () => {
        for (const name of volumes) await makeVolume(name);
      })(),
    ]);
    const rows: Row[] = [];
    const all = lines.length + volumes.length;
    for (let turn = 1; rows.length < all; turn += 1) {
      const after = (rows.at(-1) ?? begin)?.position;
      const wanted = Math.min(all - rows.length, 1 + ((turn * 7) % 40));
      rows.push(...(await follow(PROJECT, { ...ofProject(own), after }, (_, count) => count === wanted)));
    }
    await writing;
    expect(ofType(rows, 'ApplicationLogLine')).toEqual(lines);
    expect(ofType(rows, 'Activity')).toEqual(volumes);
  });

  test('ends when one of its two scopes is taken away', async () => {
    for (const [left, required_scope] of [
      ['read', 'logs:read'],
      ['logs:read', 'read'],
    ]) {
      const token = await personalKey(service, { scopes: ['read', 'logs:read'] });
      const following = results({ query: PROJECT, variables: ofProject(target), key: token }, () => false);
      await sleep(1_000);
      const begun = performance.now();
      await service.sql(`update api_keys set scopes = array[$1] where hash = $2`, [left, sha256(token)]);
      const last = (await following).at(-1);
      expect(performance.now() - begun).toBeLessThan(ENDS_WITHIN_MS);
      expect(last?.errors?.[0]?.extensions).toMatchObject({ code: 'insufficient_scope', required_scope });
    }
  });

  test('who may not read both lists is refused, and told why', async () => {
    const variables = ofProject(target);
    const ask = (key: string | null, own = variables): Promise<unknown> =>
      refusal({ query: PROJECT, variables: own, key });
    expect(await ask(null)).toMatchObject({ code: 'token_missing', status: 401 });
    const stranger = await service.newProject({ stranger: true });
    expect(await ask(stranger.key)).toMatchObject({ code: 'project_not_found', status: 404 });
    for (const [scopes, required_scope] of [
      [['read'], 'logs:read'],
      [['logs:read'], 'read'],
    ] as const) {
      const key = await personalKey(service, { scopes: [...scopes] });
      expect(await ask(key)).toMatchObject({ code: 'insufficient_scope', required_scope });
    }
    const foreign = await makeTarget(service, stranger.id, stranger.key);
    expect(await ask(service.key, { ...variables, application: foreign.application })).toMatchObject({
      code: 'not_found',
    });
    expect(await ask(stranger.key, { id: stranger.id, application: target.application })).toMatchObject({
      code: 'not_found',
    });
  });
});

test('a position that is none, or of another list, is refused before the stream begins', async () => {
  const own = await newTarget();
  await writeLines(own, ['of-own']);
  await writeLines(target, ['of-target']);
  await makeVolume('of-project');
  const [line] = (await follow(LOG, { id: own.application }, is('of-own'))).slice(-1);
  const [other] = (await follow(LOG, { id: target.application }, is('of-target'))).slice(-1);
  const [entry] = (await follow(ACTIVITY, { id: target.project }, is('of-project'))).slice(-1);
  const [both] = (await follow(PROJECT, ofProject(own), is('of-own'))).slice(-1);
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?limit=1`);
  const foreign = [other, entry, both].map((row) => row?.position);
  const wrong: [string, Record<string, string>, unknown[]][] = [
    [LOG, { id: own.application }, ['', '1:1:', body.next_cursor, ...foreign]],
    [ACTIVITY, { id: own.project }, ['x', line?.position, both?.position]],
    [PROJECT, ofProject(own), ['x', line?.position, entry?.position]],
    [PROJECT, ofProject(target), [both?.position]],
    [STEPS, { id: own.application, deployment: own.deployment }, [line?.position]],
  ];
  for (const [query, variables, positions] of wrong)
    for (const after of positions)
      expect([after, await refusal({ query, variables: { ...variables, after } })]).toEqual([
        after,
        expect.objectContaining({ code: 'invalid_cursor', status: 400 }),
      ]);
});

test('a position holds on the other face, and in lists there is none', async () => {
  const own = await newTarget();
  await writeLines(own, ['on-graphql', 'on-rest']);
  const rows = await follow(LOG, { id: own.application }, is('on-rest'));
  const stream = await openStream(`${service.url}/v2/applications/${own.application}/logs`, {
    headers: {
      ...{ ...bearer(service.key), Accept: 'text/event-stream', 'X-Svc-Project': own.project },
      'Last-Event-ID': rows.find(is('on-graphql'))?.position as string,
    },
  });
  while (!stream.text().includes('on-rest')) await sleep(20);
  stream.close();
  expect(stream.text()).not.toContain('on-graphql');
  expect(stream.text()).not.toContain('position');
  const id = /^id: (.+)$/m.exec(stream.text())?.[1];
  await writeLines(own, ['after-both']);
  expect(texts(await follow(LOG, { id: own.application, after: id }, is('after-both')))).toEqual(['after-both']);
  const { data } = await service.graphql('query ($id: ID!) { listApplicationLogs(id: $id) { data { position } } }', {
    id: own.application,
  });
  expect(new Set(data.listApplicationLogs.data.map(({ position }: Row) => position))).toEqual(new Set([null]));
});
