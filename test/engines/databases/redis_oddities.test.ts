/** @tier heavy @quarter 2 @covers drivers/database/redis */
// What is restored, copied, upgraded and downloaded is what was there: judged by DEBUG DIGEST of a server that was
// filled by the same commands and never knew this platform.
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineFound } from '../../../core/catalog/host_facts';
import type { DatabaseServer } from '../../../drivers/database';
import { hostFacts } from '../../../drivers/host';
import { ctx, openServerTrial, settle, specOf, removeServers } from '../../support/databases/database_server';
import { redisServers, type Servers } from '../../support/databases/hosted_servers';
import { connectTenant } from '../../support/databases/redis_client';
import { besidesDigest, fill, oddities, withStockServer, type Send } from '../../support/databases/redis_oddities';
import type { Trial } from '../../support/builds/runtime';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const engines = (['redis', 'valkey'] as const).filter((engine) => engine === 'redis' || has('valkey-server'));
const there = has('redis-server') || process.env.CI !== undefined;
const describeServer = there
  ? describe.each(engines)
  : describe.skip.each(engines.map((engine) => `${engine} (redis-server is not installed)`));
const content = oddities(64 << 20);

jest.setTimeout(120_000);

describeServer('%s', (engineName) => {
  const engine = engineName as 'redis' | 'valkey';
  let trial: Trial;
  let driver: Servers;
  let found: EngineFound;
  let spec: DatabaseServer;
  let expected: { digest: unknown; besides: unknown };

  beforeAll(async () => {
    trial = await openServerTrial();
    [found] = (await hostFacts())[engine] as [EngineFound];
    driver = redisServers({
      ...{ runtime: trial.runtime, disks: trial.disks, directory: `${trial.root}/databases`, engine },
      found: [found, { ...found, series: '99.0' }],
    });
    spec = specOf(engine, found.series, 18041, {
      size: { memory_mb: 1024, cpus: 1, max_connections: 20 },
      users: [
        { username: 'app', password: 'first-word', access: 'admin' },
        { username: 'reader', password: 'r-word', access: 'read_only' },
      ],
    });
    await settle(driver, spec);
    await asApp(spec, (send) => fill(send, content));
    const digest = await withStockServer(found.path, null, async (send) => {
      await fill(send, content);
      return send(['DEBUG', 'DIGEST']);
    });
    expected = { digest, besides: await asApp(spec, besidesDigest) };
  });
  afterAll(async () => {
    await removeServers(driver);
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  async function asApp<T>(of: DatabaseServer, work: (send: Send) => Promise<T>): Promise<T> {
    const client = await connectTenant(of, of.users[0]!.password, undefined);
    try {
      return await work((command) => client.sendCommand(command as string[]));
    } finally {
      client.destroy();
    }
  }

  /** The server itself, and a backup of it that a stock server loads. */
  async function requireEqual(of: DatabaseServer, backupId: string): Promise<void> {
    expect(await asApp(of, besidesDigest)).toEqual(expected.besides);
    await driver.backup(of, backupId, ctx());
    const { stream } = await driver.openBackup(of.id, backupId);
    const stock = await withStockServer(found.path, stream, async (send) => ({
      digest: await send(['DEBUG', 'DIGEST']),
      besides: await besidesDigest(send),
    }));
    expect(stock).toEqual(expected);
  }

  const from = (id: string, backup_id: string) => ({ id, server_id: spec.id, backup_id, until: null });

  test('a backup is what was there, for a server that knows nothing of the platform', async () => {
    await requireEqual(spec, 'bkp_whole');
  });

  test('restored in place: equal, users too; a key that ended since does not come back', async () => {
    await asApp(spec, (send) => send(['SET', 'short', '1', 'PX', '1500']));
    await driver.backup(spec, 'bkp_short', ctx());
    await asApp(spec, (send) => send(['FLUSHALL']));
    await asApp(spec, (send) => send(['FUNCTION', 'FLUSH']));
    await sleep(1_500);
    await driver.restore(spec, from('restore_1', 'bkp_short'), ctx());
    await settle(driver, spec);
    expect(await asApp(spec, (send) => send(['EXISTS', 'short']))).toBe(0);
    await requireEqual(spec, 'bkp_restored');
    expect(await asApp(spec, (send) => send(['FCALL_RO', 'stock', '1', 'number']))).toBe('9223372036854775807');
    const reader = await connectTenant(spec, 'r-word', 'reader');
    await expect(reader.sendCommand(['SET', 'a', '1'])).rejects.toThrow(/NOPERM|no permissions/);
    reader.destroy();
  });

  test('a copy, and what a restart reads from its own files', async () => {
    const copy = { ...spec, id: `db_${engine}_copy`, port: 18042, tenant: 12 };
    await settle(driver, copy);
    await driver.restore(copy, from('restore_2', 'bkp_whole'), ctx());
    await settle(driver, copy);
    await settle(driver, { ...copy, running: false });
    await settle(driver, copy);
    await requireEqual(copy, 'bkp_of_copy');
    await driver.remove(copy.id, ctx());
  });

  test('upgraded', async () => {
    await driver.upgrade({ ...spec, version: '99.0' }, spec.version, ctx());
    spec = { ...spec, version: '99.0' };
    await settle(driver, spec);
    await requireEqual(spec, 'bkp_upgraded');
  });
});

function has(program: string): boolean {
  return spawnSync(program, ['--version']).status === 0;
}
