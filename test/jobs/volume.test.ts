// Volumes from row to directory and back, by the real job and the real driver.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { startLoop, type Loop } from '../../jobs/loop';
import { job } from '../../jobs/volumes/volume';
import { openWorkshop, UNIT_BYTES, until, type Workshop } from '../support/runner/workshop';

interface Row {
  status: string;
  status_reason: string | null;
  used_bytes: number;
  over_quota: boolean;
  enforcement: string;
  driver: string;
  version: number;
  observed_generation: number;
  fence: number;
  next_at: string | null;
}

let workshop: Workshop;
let loop: Loop;

beforeAll(async () => {
  workshop = await openWorkshop();
  loop = startLoop(workshop.parts, { pollMs: 50, jobs: [{ ...job, deadlineMs: 800 }] });
});
afterAll(async () => {
  await loop.stop();
  await workshop.close();
});

const dataOf = (id: string): string => path.join(workshop.directory, id, 'data');

async function reach(id: string, status: string): Promise<Row> {
  await until(`${id} is ${status}`, async () => (await workshop.row<Row>('volumes', id))?.status === status);
  return (await workshop.row<Row>('volumes', id)) as Row;
}

/** Lets the time of the next look come. */
async function pollAgain(id: string): Promise<Row> {
  const before = await workshop.row<Row>('volumes', id);
  await workshop.rows('update volumes set next_at = now() where id = ?', [id]);
  await until('it was looked at', async () => {
    const row = await workshop.row<Row & { lease_owner: string | null }>('volumes', id);
    return row !== undefined && row.lease_owner === null && row.fence > (before?.fence ?? 0);
  });
  return (await workshop.row<Row>('volumes', id)) as Row;
}

async function make(values = {}): Promise<string> {
  const [id = ''] = await workshop.addVolumes(1, values);
  await reach(id, 'available');
  return id;
}

test('a volume is made, and its use is measured about every minute', async () => {
  const id = await make();
  const row = (await workshop.row<Row>('volumes', id)) as Row;
  expect(existsSync(dataOf(id))).toBe(true);
  expect(row).toMatchObject({
    driver: 'directory',
    enforcement: 'soft',
    over_quota: false,
    status_reason: null,
    version: 1,
    ref: { driver: 'directory', name: id },
  });
  const wait = Date.parse(row.next_at ?? '') - Date.now();
  expect(wait).toBeGreaterThan(45_000);
  expect(wait).toBeLessThan(70_000);

  writeFileSync(path.join(dataOf(id), 'file'), Buffer.alloc(3 * UNIT_BYTES, 1));
  const full = await pollAgain(id);
  expect(full.used_bytes).toBeGreaterThanOrEqual(3 * UNIT_BYTES);
  expect(full).toMatchObject({
    over_quota: true,
    version: 1,
    status: 'available',
    observed_generation: row.observed_generation + 1,
  });
  expect(await pollAgain(id)).toMatchObject({ observed_generation: full.observed_generation, version: 1 });
});

test('a larger size is made real; an attached volume ends as in_use', async () => {
  const id = await make();
  writeFileSync(path.join(dataOf(id), 'file'), Buffer.alloc(3 * UNIT_BYTES, 1));
  await workshop.rows(`insert into applications (id, project_id, name, region, application_type, default_hostname,
    created_at, updated_at)
    values ('app_1', 'prj_1', 'a', 'local', 'small', 'a.localhost', now(), now())`);
  await workshop.change('volumes', id, {
    size_gb: 5,
    status: 'resizing',
    application_id: 'app_1',
    mount_path: '/data',
  });
  expect(await reach(id, 'in_use')).toMatchObject({ over_quota: false, observed: { size_gb: 5 } });
});

test('a directory of files that vanished is made again', async () => {
  const id = await make();
  rmSync(dataOf(id), { recursive: true });
  await pollAgain(id);
  expect(existsSync(dataOf(id))).toBe(true);
  expect(await reach(id, 'available')).toMatchObject({ status_reason: null });
});

test('a volume that is gone as a whole fails instead of coming back empty, and recovers with its files', async () => {
  const id = await make();
  const home = path.join(workshop.directory, id);
  const aside = `${workshop.directory}-aside`;
  renameSync(home, aside);
  const lost = await pollAgain(id);
  expect(lost).toMatchObject({ status: 'failed' });
  expect(lost.status_reason).toMatch(/^The files of this volume are gone from the host/);
  expect(existsSync(home)).toBe(false);
  expect(Date.parse(lost.next_at ?? '') - Date.now()).toBeGreaterThan(30_000);

  expect(await pollAgain(id)).toMatchObject({ status: 'failed' });
  expect(existsSync(home)).toBe(false);

  renameSync(aside, home);
  await pollAgain(id);
  expect(await reach(id, 'available')).toMatchObject({ status_reason: null });
});

test('what bears the name of a volume but is not ours is left alone', async () => {
  const [id = ''] = await workshop.addVolumes(1, { next_at: null });
  mkdirSync(path.join(workshop.directory, id));
  writeFileSync(path.join(workshop.directory, id, 'theirs'), 'x');
  await workshop.change('volumes', id, {});
  const row = await reach(id, 'failed');
  expect(row.status_reason).toMatch(/does not touch it/);
  await workshop.change('volumes', id, { deleted_at: new Date() });
  await until('the row is gone', async () => (await workshop.row('volumes', id)) === undefined);
  expect(readdirSync(path.join(workshop.directory, id))).toEqual(['theirs']);
});

test('a host that does not answer fails the volume at its deadline; a change starts again', async () => {
  const place = workshop.directory;
  renameSync(place, `${place}-away`);
  writeFileSync(place, 'no directory');
  const [id = ''] = await workshop.addVolumes(1);
  const row = await reach(id, 'failed');
  expect(row.status_reason).toMatch(/^The platform gave up after/);
  expect(row.status_reason).not.toContain(place);
  // Known before anything was made.
  expect(row.driver).toBe('directory');
  rmSync(place);
  renameSync(`${place}-away`, place);
  expect(await pollAgain(id)).toMatchObject({ status: 'failed' });
  await workshop.change('volumes', id, { size_gb: 3, status: 'provisioning', status_reason: null });
  expect(await reach(id, 'available')).toMatchObject({ status_reason: null });
});

test('a volume stays with the driver that it was made with', async () => {
  const id = await make();
  const { volumes } = workshop.parts.drivers;
  const before = volumes.default;
  volumes.default = volumes.byName.get('loop_image') as typeof before;
  await workshop.change('volumes', id, { size_gb: 4, status: 'resizing' });
  expect(await reach(id, 'available')).toMatchObject({
    driver: 'directory',
    enforcement: 'soft',
    observed: { size_gb: 4 },
  });
  volumes.default = before;
});

test('a driver that is not there: the volume fails with a reason, and its tear-down waits', async () => {
  const id = await make();
  await workshop.change('volumes', id, { driver: 'tape' });
  expect(await reach(id, 'failed')).toMatchObject({
    status_reason: 'The volume driver that this volume was created with is not available on this host.',
  });
  await workshop.change('volumes', id, { deleted_at: new Date() });
  await until(
    'a try was made',
    async () => ((await workshop.row<{ attempts: number }>('volumes', id))?.attempts ?? 0) > 0,
  );
  expect(existsSync(dataOf(id))).toBe(true);
  await workshop.change('volumes', id, { driver: 'directory' });
  await until('the row is gone', async () => (await workshop.row('volumes', id)) === undefined);
  expect(existsSync(dataOf(id))).toBe(false);
});
