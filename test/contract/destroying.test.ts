// Keys that may not delete: which operations that concerns is found by names, and inputs that destroy are refused.
import { newBrowser } from '../support/identity/browser';
import { destroys } from '../support/contract/admission';
import { extensions, published } from '../support/contract/table';
import { startService, type TestService } from '../support/service';

let service: TestService;
let key: string;
beforeAll(async () => {
  service = await startService();
  key = await service.mintKey({ may_destroy: false });
});
afterAll(() => service.close());

/** Changes whose names say that something goes, and why nothing is lost by them. */
const HARMLESS: Record<string, string> = {
  cancelDeployment: 'what runs goes on, and the deployment can be made again',
  cancelRun: 'it can be started again',
  disableDatabaseExtension: 'what has data of its types keeps it in the database',
  cancelDatabaseImport: 'what it was to bring is still where it came from',
  stopApplication: 'it can be started again',
  stopDatabase: 'it can be started again',
  moveApplicationDomain: 'it can be moved back',
  rotateEmailDomainDkim: 'the key before signs until the new one is published',
  rotateDnssecKey: 'the key before stays until resolvers have forgotten it',
  setBucketCors: 'a setting that can be set again',
  setBucketPolicy: 'a setting that can be set again',
  setEnvironmentVariable: 'a setting, which programs of CI set',
  importDnsZone: 'only with `mode: replace`',
  batchDnsRecords: 'only with `delete`',
  importStack: 'it writes an answer, and stores nothing',
  createCdnPurge: 'the cache is filled again',
  promoteApplication: 'the version before can be rolled back to',
  promoteDatabaseReplica: 'the database before stays',
  upgradeDatabase: 'the content stays',
  restoreVolumeBackup: 'only with `in_place`',
  restoreDeletedResource: 'what was deleted is there again',
  restoreDeletedProject: 'what was deleted is there again',
};
const NAMES =
  /^(delete|remove|revoke|rotate|replace|restore|import|batch|set|cancel|stop|move|promote|upgrade|disable)|Purge/;

test('every operation whose name says that something goes is judged', () => {
  const named = [...published, ...extensions].filter(({ id, kind }) => kind === 'mutation' && NAMES.test(id));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((one) => !destroys(one) && !HARMLESS[one.id]).map(({ id }) => id)).toEqual([]);
});

test('the OpenAPI document marks what destroys, and nothing else', async () => {
  const { body } = await service.call('GET', '/v2/openapi.json', { key: null });
  const operations = Object.values(body.paths as Record<string, Record<string, Record<string, unknown>>>).flatMap(
    (one) => Object.values(one),
  );
  const marked = operations.filter((one) => one['x-destroys']).map((one) => one.operationId);
  const expected = [...published, ...extensions].filter(destroys).map(({ id }) => id);
  expect(marked.sort()).toEqual(expected.sort());
  const brought = Object.fromEntries(operations.map((one) => [one.operationId, one['x-reversible-by']]));
  expect([brought.deleteVolume, brought.deleteDnsRecord, brought.purgeDeletedResource]).toEqual([
    ...['bin', 'activity', undefined],
  ]);
});

test('an input that destroys is refused, and the rest of the operation is not', async () => {
  const { body: zone } = await service.call('POST', '/v2/dns_zones', { key, body: { name: 'example.com' } });
  const path = `/v2/dns_zones/${zone.id}`;
  const record = { type: 'A', name: 'www', value: '192.0.2.1', ttl: 300 };
  const { body: made } = await service.call('POST', `${path}/records/batch`, { key, body: { create: [record] } });
  const id = made.created[0].id as string;
  const refused = [
    await service.call('POST', `${path}/records/batch`, { key, body: { delete: [id] } }),
    await service.call('POST', `${path}/import`, { key, body: { zone_file: 'a 300 IN A 192.0.2.2', mode: 'replace' } }),
    await service.call('DELETE', `${path}/records/${id}`, { key }),
    await service.call('DELETE', path, { key }),
  ];
  for (const { status, body } of refused) expect([status, body.code]).toEqual([403, 'destroy_not_allowed']);
  // What would open the way, and what only says what it would do.
  const protection = await service.call('PATCH', path, { key, body: { deletion_protection: false } });
  expect([protection.status, protection.body.code]).toEqual([403, 'destroy_not_allowed']);
  expect((await service.call('PATCH', path, { key, body: { deletion_protection: true } })).status).toBe(200);
  const replaced = { zone_file: 'a 300 IN A 192.0.2.2', mode: 'replace', dry_run: true };
  expect((await service.call('POST', `${path}/import`, { key, body: replaced })).status).toBe(200);
  await service.call('PATCH', path, { body: { deletion_protection: false } });
  expect(refused[0]?.body.detail).toContain('`delete`');
  expect(refused[1]?.body.detail).toContain('`mode` with the value `replace`');
  const allowed = [
    await service.call('POST', `${path}/records/batch`, { key, body: { create: [], delete: [] } }),
    await service.call('POST', `${path}/import`, { key, body: { zone_file: 'a 300 IN A 192.0.2.2', mode: 'merge' } }),
    await service.call('PATCH', `${path}/records/${id}`, { key, body: { ttl: 600 } }),
  ];
  expect(allowed.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await service.call('GET', `${path}/records/${id}`, { key })).status).toBe(200);
});

test('it is refused over GraphQL, in a dry run and for what does not exist', async () => {
  const mutation = 'mutation { deleteVolume(id: "vol_01h455vb4pex5vsknk084sn02q") }';
  const answer = await service.call('POST', '/graphql', { key, body: { query: mutation } });
  expect(answer.body.errors[0].extensions.code).toBe('destroy_not_allowed');
  const dry = await service.call('DELETE', '/v2/volumes/vol_01h455vb4pex5vsknk084sn02q', {
    key,
    headers: { 'Dry-Run': 'true' },
  });
  expect([dry.status, dry.body.code]).toEqual([403, 'destroy_not_allowed']);
});

test('a person decides it for each key, of a person and of a project; sessions may', async () => {
  const owner = await newBrowser(service, 'owner3@example.com', 'owner');
  const { createPersonalKey: personal } = await owner.data(
    `mutation ($input: CreatePersonalKeyInput!) {
      createPersonalKey(input: $input) { key { kind may_destroy } token } }`,
    { input: { name: 'CI', scopes: ['read', 'write'], may_destroy: false } },
  );
  const { createProjectKey: ofProject } = await owner.data(
    `mutation ($id: ID!, $input: CreateProjectKeyInput!) {
      createProjectKey(project_id: $id, input: $input) { key { kind may_destroy } token } }`,
    { id: service.project, input: { name: 'CI', may_destroy: false } },
  );
  for (const { key: made, token } of [personal, ofProject]) {
    expect(made.may_destroy).toBe(false);
    const { body: volume } = await service.call('POST', '/v2/volumes', {
      key: token,
      body: { name: `kept-${made.kind}`, size_gb: 1 },
    });
    const gone = await service.call('DELETE', `/v2/volumes/${volume.id}`, { key: token });
    expect([gone.status, gone.body.code]).toEqual([403, 'destroy_not_allowed']);
    await owner.data('mutation ($id: ID!) { deleteVolume(id: $id) }', { id: volume.id });
  }
  const { listProjectKeys } = await owner.data(
    'query ($id: ID!) { listProjectKeys(project_id: $id) { data { name may_destroy } } }',
    { id: service.project },
  );
  expect(listProjectKeys.data).toContainEqual({ name: 'CI', may_destroy: false });
});
