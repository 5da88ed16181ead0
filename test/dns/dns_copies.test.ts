// Copies of zones on the disk of the name server: it answers by them from its start, and zones without one are not left
// until their next check.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../core/driver';
import { createLog } from '../../core/log/log';
import { loadKeyRing, secretBox, type SecretBox } from '../../core/secrets';
import type { ZoneSpec } from '../../engines/dns/nameserver';
import { openNameserver } from '../../server/agents/nameserver';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

let service: TestService;
let id: string;
let copy: string;

beforeAll(async () => {
  service = await startService();
  id = (await service.call('POST', '/v2/dns_zones', { body: { name: 'example.com' } })).body.id;
  copy = path.join(service.dataDir, 'dns', `${id}.json`);
});
afterAll(() => service.close());

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PRIVATE = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');

/** The name server is opened once more. @returns ids of the zones that it answers for */
async function reopened(secrets: SecretBox, save = false): Promise<string[]> {
  const { config, database } = service.platform;
  const dns = await openNameserver({
    config: { ...config, dnsPort: await freePort(), dnsListen: ['127.0.0.1'] },
    ...{ secrets, database, log: createLog('silent') },
  });
  if (!dns) throw new Error('the name server cannot be opened');
  const ctx = driverContext(10_000);
  if (save) await dns.driver.ensure({ id, spec: SPEC }, { state: 'absent' }, ctx);
  const served: string[] = [];
  for await (const { owner_id } of dns.driver.list(ctx)) served.push(owner_id);
  await dns.close();
  return served;
}

const SPEC: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 300, name_servers: ['ns1.example.net'], records: [] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  keys: [{ role: 'ksk', private_key: PRIVATE }],
};

const settle = (): Promise<unknown> =>
  service.sql(`update dns_zones set next_at = now() + interval '1 hour', is_served = true where id = $1`, [id]);
const isDue = async (): Promise<boolean> =>
  (await service.sql<{ due: boolean }>('select next_at <= now() as due from dns_zones where id = $1', [id]))[0]?.due ===
  true;

test('a zone without a copy is due at the start of the name server, one with a copy is not', async () => {
  await settle();
  expect(await reopened(service.platform.secrets, true)).toEqual([id]);
  expect(await isDue()).toBe(true);
  await settle();
  expect(await reopened(service.platform.secrets)).toEqual([id]);
  expect(await isDue()).toBe(false);
  for (const damage of [() => writeFileSync(copy, '{"name": "exam'), () => rmSync(copy)]) {
    damage();
    await settle();
    expect(await reopened(service.platform.secrets)).toEqual([]);
    expect(await isDue()).toBe(true);
  }
});

test('a start with a new key in front of the old one seals the copies again, so that the old one can go', async () => {
  const added = { id: 'added', key: randomBytes(32) };
  const fresh = secretBox([added]);
  const ring = loadKeyRing({ setting: null, dataDir: service.dataDir });
  await reopened(service.platform.secrets, true);
  const before = readFileSync(copy, 'utf8');
  await settle();
  expect(await reopened(secretBox([added, ...ring]))).toEqual([id]);
  const after = readFileSync(copy, 'utf8');
  expect([before.includes(service.platform.secrets.prefix), after.includes(fresh.prefix)]).toEqual([true, true]);
  expect(await reopened(fresh)).toEqual([id]);
  expect(await isDue()).toBe(false);
  // A key that is not there: the zone is made again of the database.
  expect(await reopened(secretBox([{ id: 'stranger', key: randomBytes(32) }]))).toEqual([]);
  expect(await isDue()).toBe(true);
});
