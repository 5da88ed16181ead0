/** @tier heavy @quarter 3 @covers models/bin/evict.ts jobs/periodic_task.ts server/operator/doctor_bin.ts */
// A full disk: a delete works, and what was deleted first goes before its time only where the operator has said so.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { diskUsedPercent } from '../../drivers/host';
import { binCalls } from '../support/bin_calls';
import { run } from '../support/processes/operator_command';
import { startService, type TestService } from '../support/service';
import { retryCheck, waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
const MEGABYTE = 2 ** 20;
const small = mkdtempSync(path.join(tmpdir(), 'platform-evict-'));
// Only root may mount; elsewhere there is no small disk to fill.
const mounted = process.getuid?.() === 0 && mount();
const onSmallDisk = mounted ? test : test.skip;

function mount(): boolean {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=711', 'tmpfs', small], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

let service: TestService | undefined;
afterEach(() => service?.close());
afterAll(() => {
  if (mounted) execFileSync('umount', ['-l', small]);
  rmSync(small, { recursive: true, force: true });
});
const running = (): TestService => service as TestService;
const bin = binCalls(running);
const call: TestService['call'] = (...args) => running().call(...args);
const start = async (settings: Record<string, string>): Promise<void> => {
  service = await startService({ worker: true, settings: { RETENTION_OF_DELETED_DAYS: '7', ...settings } });
};

const filesOf = (id: string): string => path.join(running().platform.config.dataDir, 'volumes', id, 'data');
async function volume(name: string, megabytes: number, project = running().project): Promise<any> {
  const made = await call('POST', '/v2/volumes', { body: { name, size_gb: 1 }, project });
  expect([made.status, made.text]).toEqual([201, expect.anything()]);
  const found = await running().settle(`/v2/volumes/${made.body.id}`, { project });
  writeFileSync(path.join(filesOf(found.id), 'a.bin'), Buffer.alloc(megabytes * MEGABYTE, 1));
  return found;
}
const entries = async (project = running().project): Promise<string[]> =>
  (await call('GET', `/v2/projects/${project}/bin`, { project })).body.data.map(({ resource }: any) => resource.name);
async function look(): Promise<void> {
  const at = async (): Promise<string> =>
    (await running().sql(`select observed ->> 'at' as at from schedules where id = 'empty_bin'`))[0].at;
  const before = await at();
  await running().sql(`update schedules set next_at = now() where id = 'empty_bin'`);
  await waitFor('a look at the disk', async () => (await at()) !== before);
}

onSmallDisk(
  'as many as the disk needs go, those deleted first before others',
  async () => {
    await start({ PLATFORM_DATA_DIR: small, EVICT_DELETED_ABOVE_DISK_PERCENT: '60' });
    const [a, b, c] = [await volume('aaa', 12), await volume('bbb', 12), await volume('ccc', 12)];
    for (const { id } of [a, b, c]) await call('DELETE', `/v2/volumes/${id}`);
    await look();
    expect(await entries()).toEqual(['ccc', 'bbb', 'aaa']);
    writeFileSync(path.join(small, 'ballast'), Buffer.alloc(12 * MEGABYTE, 1));
    expect(await diskUsedPercent(small)).toBeGreaterThan(60);
    await look();
    await retryCheck(async () => expect(await entries()).toEqual(['ccc', 'bbb']));
    await waitFor('its files go', () => !existsSync(filesOf(a.id)));
    for (let round = 0; round < 2; round += 1) await look();
    expect(await entries()).toEqual(['ccc', 'bbb']);
    expect(existsSync(filesOf(b.id))).toBe(true);
    const { body } = await call('GET', `/v2/projects/${running().project}/activity?resource_id=${a.id}`);
    expect(body.data[0]).toMatchObject({
      ...{ action: 'deleted_resource.evicted', actor: { type: 'system' } },
      resource: { type: 'volume', id: a.id, name: 'aaa' },
    });
  },
  60_000,
);

onSmallDisk(
  'on a full disk a delete, a restore and a purge work, and doctor says what the bin holds',
  async () => {
    const settings = { PLATFORM_DATA_DIR: small };
    await start(settings);
    const [a, b] = [await volume('aaa', 8), await volume('bbb', 8)];
    const left = (): void => {
      try {
        for (const part = Buffer.alloc(1 << 20, 1); ;) writeFileSync(path.join(small, 'rest'), part, { flag: 'a' });
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
      }
    };
    left();
    const ofA = await bin.deleted(`/v2/volumes/${a.id}`);
    const ofB = await bin.deleted(`/v2/volumes/${b.id}`);
    await look();
    expect(await entries()).toEqual(['bbb', 'aaa']);
    await running().sql('update volumes set used_bytes = $1', [512 * MEGABYTE]);
    const { out } = await run(['doctor', '--json'], {
      settings: { PLATFORM_DATA_DIR: small, DATABASE_URL: running().platform.databaseUrl },
    });
    const { detail, status } = JSON.parse(out).data.find(({ check }: any) => check === 'bin');
    expect([status, detail]).toEqual([
      'warning',
      '2 deleted resources are kept, with 1.0 GiB of volumes and databases; 100 % of the disk are used: ' +
        '`svc bin purge` removes one of a project for good, EVICT_DELETED_ABOVE_DISK_PERCENT those deleted first by ' +
        'itself',
    ]);
    expect(await bin.restored(ofB)).toEqual([]);
    expect((await running().settle(`/v2/volumes/${b.id}`)).status).toBe('available');
    expect((await bin.purge(ofA)).status).toBe(204);
    await waitFor('its files go', () => !existsSync(filesOf(a.id)));
    await retryCheck(async () => expect(await diskUsedPercent(small)).toBeLessThan(100));
  },
  60_000,
);

test('what a protected project has deleted stays, and what is on no disk', async () => {
  await start({ EVICT_DELETED_ABOVE_DISK_PERCENT: '1' });
  const { id: project } = await running().newProject();
  const [own, other] = [await volume('own', 1), await volume('other', 1, project)];
  const made = await call('POST', '/v2/observers', {
    body: { name: 'Front', type: 'uptime', uptime: { check: 'http', target: 'https://shop.example.com/' } },
  });
  await call('DELETE', `/v2/observers/${made.body.id}`);
  await call('DELETE', `/v2/volumes/${other.id}`, { project });
  const protection = { body: { deletion_protection: true }, project };
  expect((await call('PATCH', `/v2/projects/${project}`, protection)).status).toBe(200);
  await call('DELETE', `/v2/volumes/${own.id}`);
  await look();
  await retryCheck(async () => expect(await entries()).toEqual(['Front']));
  await look();
  expect([await entries(), await entries(project)]).toEqual([['Front'], ['other']]);
});
