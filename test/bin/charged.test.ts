// What is in the bin is charged and counted for its storage alone: figures over a life of each kind.
import { binCalls } from '../support/bin_calls';
import { childrenOf } from '../support/databases/database_children';
import { database, describeHost } from '../support/databases/databases';
import { storedPassword } from '../support/contract/password';
import { browser, type Browser } from '../support/identity/browser';
import { startService, type Answer, type TestService } from '../support/service';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let service: TestService;
let owner: Browser;
const bin = binCalls(() => service);
beforeAll(async () => {
  service = await startService({ settings: { RETENTION_OF_DELETED_DAYS: '7' } });
  await describeHost(service);
  await service.sql('update users set password_hash = $1', [storedPassword('the password of the owner')]);
  const [{ email }] = await service.sql('select email from users');
  owner = browser(service);
  await owner.logIn(email, 'the password of the owner');
});
afterAll(() => service.close());

/** What has been charged until now is so much longer ago. */
const pass = (hours: number): Promise<unknown> =>
  service.sql(
    `update usage_spans set started_at = started_at - make_interval(hours => $1),
    ended_at = ended_at - make_interval(hours => $1)`,
    [hours],
  );

/** Units times hours, by kind, of this month and the last. */
async function charged(): Promise<Record<string, number>> {
  const lines = '{ lines { kind hours } }';
  const { billingSummary: found } = await owner.data(
    `{ billingSummary { current_month ${lines} last_month ${lines} } }`,
  );
  const sums: Record<string, number> = {};
  for (const { kind, hours } of [...found.current_month.lines, ...found.last_month.lines])
    sums[kind] = (sums[kind] ?? 0) + Number(hours);
  return Object.fromEntries(Object.entries(sums).map(([kind, hours]) => [kind, Math.round(hours)]));
}

const used = async (): Promise<Record<string, number>> => {
  const { quotas } = (await service.call('GET', `/v2/projects/${service.project}/usage`)).body;
  return Object.fromEntries(quotas.filter((one: any) => one.used).map((one: any) => [one.resource, one.used]));
};

const small = { database_package: 's-1vcpu-1gb' };

/** Every kind with a bin that a project has directly. */
const OTHERS: [collection: string, body: object][] = [
  ['applications', { name: 'shop' }],
  ['buckets', { name: 'assets-of-the-shop' }],
  ['registries', { name: 'shop' }],
  ['dns_zones', { name: 'shop.example.org' }],
  ['cdn_zones', { name: 'assets', origin: { type: 'url', url: 'https://origin.example.com' } }],
  ['email_domains', { name: 'mail.example.org' }],
  ['observers', { name: 'Front', type: 'uptime', uptime: { check: 'http', target: 'https://shop.example.com/' } }],
  ['notifiers', { name: 'Hook', type: 'webhook', config: { url: 'https://hooks.example.com/' } }],
];

test('storage is charged and counted in the bin, and nothing else is; a purge ends it', async () => {
  const made = async (place: string, body: object): Promise<any> => {
    const answer = await service.call('POST', place, { body });
    expect([place, answer.status, answer.text]).toEqual([place, 201, expect.anything()]);
    return answer.body;
  };
  const others: string[] = [];
  for (const [collection, body] of OTHERS) {
    const { id } = await made(`/v2/${collection}`, body);
    others.push(`/v2/${collection}/${id}`);
  }
  const volume = `/v2/volumes/${(await made('/v2/volumes', { name: 'uploads', size_gb: 4 })).id}`;
  const main = await database(service, { name: 'main', storage_gb: 20, ...small });
  const { post } = childrenOf(service, main.id);
  const replica = (await post('replicas', { name: 'reader' })).body;
  await service.sql(`update database_replicas set status = 'available' where id = $1`, [replica.id]);
  const all = [...others, volume, `/v2/databases/${main.id}`];
  const counted = await used();
  expect(counted).toMatchObject({ volumes: 1, volume_storage_gb: 4, databases: 1, database_storage_gb: 20 });

  await pass(10);
  expect(await charged()).toEqual({ volume: 40, database: 10, database_replica: 10 });
  const entries: any[] = [];
  for (const place of all) entries.push(await bin.deleted(place));
  expect(await used()).toEqual({ volume_storage_gb: 4, database_storage_gb: 20 });
  await pass(20);
  expect(await charged()).toEqual({ volume: 120, database: 10, database_replica: 10 });

  for (const entry of entries) await bin.restored(entry);
  expect(await used()).toEqual(counted);
  await pass(5);
  expect(await charged()).toEqual({ volume: 140, database: 15, database_replica: 15 });
  const [{ open }] = await service.sql('select count(*)::int as open from usage_spans where ended_at is null');
  expect(open).toBe(3);

  for (const place of all) await bin.purge(await bin.deleted(place));
  expect(await used()).toEqual({});
  await pass(40);
  expect(await charged()).toEqual({ volume: 140, database: 15, database_replica: 15 });
});

const GIGABYTE = 2 ** 30;

test('the disk of what is in the bin is promised, and its memory is asked for by a restore', async () => {
  // Nobody tears those of the test before down.
  await service.sql('delete from volumes');
  const { id } = await database(service, { name: 'room', storage_gb: 20, ...small });
  const { post } = childrenOf(service, id);
  expect((await post('replicas', { name: 'reader' })).status).toBe(201);
  const entry = await bin.deleted(`/v2/databases/${id}`);
  const create = (name: string, storage_gb: number): Promise<Answer> =>
    service.call('POST', '/v2/databases', { body: { name, engine: 'postgresql', storage_gb, ...small } });
  // 40 GB are those of the server and its replica.
  await describeHost(service, { disk_free_bytes: 60 * GIGABYTE, memory_available_bytes: 2 * GIGABYTE });
  expect((await create('large', 21)).body).toMatchObject({ code: 'capacity_unavailable' });
  expect((await create('fitting', 20)).status).toBe(201);
  const refused = await bin.restore(entry);
  expect([refused.status, refused.body.code]).toEqual([409, 'capacity_unavailable']);
  expect(await bin.entryOf(id)).toEqual(entry);
  await describeHost(service, { memory_available_bytes: 3 * GIGABYTE });
  expect(await bin.restored(entry)).toEqual([]);
});
