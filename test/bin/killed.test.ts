/** @tier heavy @quarter 3 @covers models/bin models/base/bin.ts models/base/purge.ts */
/** @user any */
// A process that is killed with SIGKILL in the middle of a deletion, a restore or a purge: nothing has happened, and
// the next try works.
import { named } from '../../db/statement';
import { binCalls } from '../support/bin_calls';
import { freePort } from '../support/processes/free_port';
import { endPrograms, startProgram } from '../support/processes/program';
import { startService, type TestService } from '../support/service';
import { retryCheck, waitFor } from '../support/wait_for';

jest.setTimeout(120_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let service: TestService;
const bin = binCalls(() => service);
beforeAll(async () => {
  const [registry, dns] = [await freePort(), await freePort()];
  const settings = { REGISTRY_PORT: String(registry), DNS_PORT: String(dns), RETENTION_OF_DELETED_DAYS: '7' };
  service = await startService({ worker: true, settings });
});
afterAll(async () => {
  await endPrograms();
  await service?.close();
});

/** Sends a request to a process of its own, which waits for the locked row and is killed there. */
async function killAt(row: { table: string; id: string }, method: string, place: string): Promise<void> {
  const port = String(await freePort());
  const { config } = service.platform;
  const program = startProgram({
    PORT: port,
    ...{ DATABASE_URL: config.databaseUrl as string, PLATFORM_DATA_DIR: service.dataDir, BASE_URL: service.url },
    ...{ WORKER: 'separate', REGISTRY_PORT: String(config.registryPort), DNS_PORT: String(config.dnsPort) },
    RETENTION_OF_DELETED_DAYS: '7',
  });
  await program.ready();
  await service.platform.database.transaction(async (session) => {
    await session.query(named(`select 1 from ${row.table} where id = $1 for update`), [row.id]);
    const sent = fetch(`http://127.0.0.1:${port}${place}`, {
      method,
      headers: { Authorization: `Bearer ${service.key}`, 'X-Svc-Project': service.project },
    }).then(
      ({ status }) => `answered ${status}`,
      () => 'no answer',
    );
    await waitFor('it waits for the row', async () => {
      const [{ waiting }] = await service.sql(
        `select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock'
          and datname = current_database()`,
      );
      return waiting > 0;
    });
    program.signal('SIGKILL');
    await program.ended;
    expect(await sent).toBe('no answer');
  });
  // The server notices that its client is gone when it has got the lock.
  await retryCheck(async () => {
    const held = `select 1 from pg_locks where relation = 'deleted_resources'::regclass and mode like 'Row%'`;
    expect(await service.sql(held)).toEqual([]);
  });
}

/** @param last a row that each operation writes as one of its last steps; the purge waits for the resource itself */
async function underFire(place: string, table: string, last: { table: string; id: string }): Promise<void> {
  const id = place.split('/').at(-1) as string;
  const isThere = async (): Promise<boolean> => (await service.call('GET', place)).status === 200;
  await killAt(last, 'DELETE', place);
  expect([await isThere(), await bin.entryOf(id)]).toEqual([true, undefined]);
  const entry = await bin.deleted(place);
  await killAt(last, 'POST', `/v2/bin/${entry.id}/restore`);
  expect([await isThere(), await bin.entryOf(id)]).toEqual([false, entry]);
  expect(await bin.restored(entry)).toEqual([]);
  expect(await isThere()).toBe(true);
  const second = await bin.deleted(place);
  await killAt({ table, id }, 'DELETE', `/v2/bin/${second.id}`);
  expect(await bin.entryOf(id)).toEqual(second);
  expect((await bin.purge(second)).status).toBe(204);
  await waitFor('its row goes', async () => !(await service.sql(`select 1 from ${table} where id = $1`, [id])).length);
}

test('a DNS zone', async () => {
  const make = async (name: string): Promise<any> =>
    (await service.call('POST', '/v2/dns_zones', { body: { name } })).body;
  const [zone, below] = [await make('shop.example.org'), await make('eu.shop.example.org')];
  // The zone below is told each time.
  await underFire(`/v2/dns_zones/${zone.id}`, 'dns_zones', { table: 'dns_zones', id: below.id });
});

test('a registry', async () => {
  const registry = (await service.call('POST', '/v2/registries', { body: { name: 'shop' } })).body;
  const body = { name: 'deployer', permissions: ['pull'], registry_ids: [registry.id] };
  const { status, body: robot } = await service.call('POST', '/v2/robot_accounts', { body });
  expect(status).toBe(201);
  await underFire(`/v2/registries/${registry.id}`, 'registries', { table: 'robot_accounts', id: robot.id });
});
