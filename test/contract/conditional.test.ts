// ETag, If-None-Match, If-Match and Location, on every operation that has them.
import type { Operation } from '../../contract/operations';
import { fixedPeriod } from '../support/contract/fixed_period';
import { startDnsServer, type DnsServer } from '../support/dns/dns_server';
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { startService, type Answer, type TestService } from '../support/service';
import { addressed, createOperation, kindOfParam, openWorld, operations, type World } from '../support/world';
import { FROM_PROVIDERS } from '../support/world_git';
import { settleRow } from '../support/world_databases';

let service: TestService;
let dns: DnsServer;
let world: World;

beforeAll(async () => {
  dns = await startDnsServer();
  service = await startService({ settings: { ...SAMPLE_SETTINGS, DNS_RESOLVERS: dns.address } });
  world = openWorld(service);
});

afterAll(async () => {
  await service.close();
  await dns.close();
});

const all = (wanted: (operation: Operation) => boolean): [string, Operation][] =>
  operations
    .filter((operation) => wanted(operation) && !FROM_PROVIDERS.includes(operation.id))
    .map((operation) => [operation.id, operation]);
const etag = (answer: Answer): string => answer.headers.get('etag') ?? '';

/** Measured or noted at every call, so that two answers differ. */
const MEASURED = [
  ...['getProjectUsage', 'listDatabasePackageAvailability', 'getMe'],
  ...['getDatabaseBackupDownload', 'downloadVolumeBackup'],
];
const validated = all(
  ({ method, id, field }) => method === 'GET' && (!field.list || field.global) && !MEASURED.includes(id),
);

test.each(validated)('%s answers 304 to its ETag', async (_, operation) => {
  const period = new URLSearchParams(fixedPeriod(operation));
  const place = `${await world.path(operation)}?${period.toString()}`;
  const first = await world.call('GET', place);
  expect([first.status, etag(first)]).toEqual([200, expect.stringMatching(/^"[\w-]+"$/)]);
  for (const tags of [etag(first), `"other", ${etag(first)}`, `W/${etag(first)}`, '*']) {
    const again = await world.call('GET', place, { headers: { 'If-None-Match': tags } });
    expect([tags, again.status, again.text, etag(again)]).toEqual([tags, 304, '', etag(first)]);
  }
  const stale = await world.call('GET', place, { headers: { 'If-None-Match': '"other"' } });
  expect([stale.status, stale.body]).toEqual([200, first.body]);
});

test('lists of rows of a project have no validator', async () => {
  const lists = all(({ method, field }) => method === 'GET' && field.list && !field.global);
  expect(lists.length).toBeGreaterThan(10);
  for (const [id, operation] of lists) {
    expect([id, (await world.call('GET', await world.path(operation))).headers.get('etag')]).toEqual([id, null]);
  }
});

/** Changes of one item: the row that the last parameter names, or a document of it. */
const changes = all(({ method }) => ['PATCH', 'PUT', 'DELETE'].includes(method));

interface Target {
  place: string;
  /** Of the present version. */
  tag: string;
}

/** A new row for a change, with its present ETag: of its GET, else of the answer that made it. */
async function target(operation: Operation): Promise<Target> {
  const last = operation.params[operation.params.length - 1];
  const kind = kindOfParam(operation, last?.name ?? '');
  if (kind === 'environment_variable') return variable(operation);
  const getter = operations.find(
    ({ method, path, field }) => method === 'GET' && path === operation.path && !field.list,
  );
  const create = createOperation(kind);
  // An entry of the bin is made by a deletion, and is read in lists alone.
  if (!create) return { place: await world.path(operation, { [kind]: await world.fresh(kind) }), tag: '"1-0"' };
  const made = await world.call('POST', await world.path(create), { body: await world.body(create) });
  expect(made.status).toBe(201);
  const id = made.body.id ?? made.body.project_id;
  await settleRow(world, kind, id);
  const place = await world.path(operation, { [kind]: id });
  return { place, tag: etag(getter ? await world.call('GET', place) : made) };
}

async function variable(operation: Operation): Promise<Target> {
  const place = await world.path(operation, { environment_variable: await world.fresh('environment_variable') });
  return { place, tag: etag(await world.call('PUT', place, { body: { value: 'first' } })) };
}

/** Documents of a resource that is still there when they are gone (docs/contract/resources.md §0.5). */
const SUB_DOCUMENTS = ['disableDnssec', 'deleteBucketCors', 'deleteBucketLifecycle', 'deleteBucketPolicy'];

async function change(operation: Operation, place: string, match?: string): Promise<Answer> {
  return world.call(operation.method, place, {
    body: await world.body(operation),
    headers: match ? { 'If-Match': match } : {},
  });
}

test.each(changes)('%s obeys If-Match', async (_, operation) => {
  const { place, tag } = await target(operation);
  expect(tag).toMatch(/^"\d+-\d+"$/);
  for (const match of ['"999-0"', 'nonsense', `W/${tag}`, '""']) {
    const refused = await change(operation, place, match);
    expect([match, refused.status, refused.body.code]).toEqual([match, 412, 'precondition_failed']);
  }
  const done = await change(operation, place, `"999-0", ${tag}`);
  expect([done.status, done.body?.code]).toEqual([operation.status, undefined]);
  if (operation.method === 'DELETE') {
    const again = SUB_DOCUMENTS.includes(operation.id) ? 204 : 404;
    return expect((await change(operation, place, '*')).status).toBe(again);
  }
  expect(etag(done)).not.toBe(tag);
  expect((await change(operation, place, tag)).status).toBe(412);
  expect((await change(operation, place, '*')).status).not.toBe(412);
});

test('what the driver reports changes the ETag of a read and no If-Match', async () => {
  const id = await world.fresh('volume');
  const before = await world.call('GET', `/v2/volumes/${id}`);
  await service.sql(
    `update volumes set observed_generation = observed_generation + 1, status = 'available' where id = $1`,
    [id],
  );
  const after = await world.call('GET', `/v2/volumes/${id}`, { headers: { 'If-None-Match': etag(before) } });
  expect([after.status, etag(after) === etag(before)]).toEqual([200, false]);
  expect(
    (
      await world.call('PATCH', `/v2/volumes/${id}`, {
        body: { name: 'observed' },
        headers: { 'If-Match': etag(before) },
      })
    ).status,
  ).toBe(200);
});

test('of many changes with one If-Match, one wins', async () => {
  const id = await world.fresh('volume');
  const tag = etag(await world.call('GET', `/v2/volumes/${id}`));
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, index) =>
      world.call('PATCH', `/v2/volumes/${id}`, { body: { name: `winner-${index}` }, headers: { 'If-Match': tag } }),
    ),
  );
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412, 412, 412, 412]);
});

const creations = all(({ method, statuses }) => method === 'POST' && statuses.includes(201));

test.each(creations)('%s says where the record is', async (_, operation) => {
  const made = await world.call('POST', await world.path(operation, await addressed(world, operation)), {
    body: await world.body(operation),
  });
  expect([made.status, etag(made)]).toEqual([201, expect.stringMatching(/^"\d+-\d+"$/)]);
  const type = String(operation.field.definition.type);
  const getter = operations.find(
    ({ method, field, path }) => method === 'GET' && String(field.definition.type) === type && path.endsWith('}'),
  );
  if (!getter) return expect(made.headers.get('location')).toBeNull();
  const place = made.headers.get('location')?.replace(service.url, '') ?? '';
  const found = await world.call('GET', place, {
    project: made.body.id.startsWith('prj_') ? made.body.id : (made.body.project_id ?? world.project),
  });
  // Secrets are shown once.
  const secrets = ['password', 'secret_access_key', 'smtp_password', 'secret', 'upload_url'].filter(
    (name) => name in made.body,
  );
  const told = { ...made.body, ...Object.fromEntries(secrets.map((name) => [name, null])) };
  expect([found.status, found.body, etag(found)]).toEqual([200, told, etag(made)]);
});
