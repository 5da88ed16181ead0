/** @tier heavy @quarter 1 @covers jobs/loop.ts jobs/step.ts */
// Real workers, killed with SIGKILL in the middle of what they do.
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../core/driver';
import { startWorkerProcess } from '../support/processes/worker_process';
import { openWorkshop, until, type Workshop } from '../support/runner/workshop';

const LOOP = { concurrency: 3, leaseMs: 900, heartbeatMs: 250, marginMs: 250, pollMs: 100 };

let workshop: Workshop;
beforeAll(async () => (workshop = await openWorkshop()));
afterAll(() => workshop.close());

/** Of 60 volumes, beside other tests that take the processor. */
const SETTLED_MS = 45_000;

test('volumes are made and grown, and taken away, by workers that are killed all the time', async () => {
  const interrupted = await underFire(async () => {
    await workshop.addVolumes(6);
    await workshop.rows(`update volumes set size_gb = size_gb + 1, status = 'resizing', generation = generation + 1,
      next_at = now(), attempts = 0, deadline_at = null
      where id in (select id from volumes where status = 'available' order by random() limit 4)`);
  }, 10);
  await withWorker(() => until('all volumes are available', async () => (await unsettled()) === 0, SETTLED_MS));
  const volumes = await workshop.rows<{ id: string; status_reason: string | null; used_bytes: string }>(
    'select * from volumes',
  );
  expect(volumes).toHaveLength(60);
  expect(volumes.filter((row) => row.status_reason !== null || row.used_bytes === null)).toEqual([]);
  expect(readdirSync(workshop.directory).sort()).toEqual(volumes.map(({ id }) => id).sort());
  expect((await owned()).sort()).toEqual(volumes.map(({ id }) => id).sort());

  const interruptedRemovals = await underFire(async () => {
    await workshop.rows(`update volumes set deleted_at = now(), generation = generation + 1, next_at = now(),
      attempts = 0, deadline_at = null
      where id in (select id from volumes where deleted_at is null order by random() limit 12)`);
  }, 6);
  // Else the kills came at moments when nothing was at work, and this test proves nothing.
  expect(interrupted).toBeGreaterThan(2);
  expect(interruptedRemovals).toBeGreaterThan(0);
  await withWorker(() =>
    until('all rows are gone', async () => (await workshop.rows('select id from volumes')).length === 0, SETTLED_MS),
  );
  expect(readdirSync(workshop.directory)).toEqual([]);
}, 150_000);

/** Gives work to a worker and kills it at a random moment, again and again. Returns how many steps were cut off. */
async function underFire(work: () => Promise<void>, kills: number): Promise<number> {
  let interrupted = 0;
  for (let kill = 0; kill < kills; kill++) {
    const worker = await startWorkerProcess({ url: workshop.url, directory: workshop.directory, loop: LOOP });
    await work();
    await sleep(Math.random() * 60);
    await worker.kill();
    interrupted += (await workshop.rows('select id from volumes where lease_until > now()')).length;
  }
  return interrupted;
}

async function withWorker(work: () => Promise<void>): Promise<void> {
  const worker = await startWorkerProcess({ url: workshop.url, directory: workshop.directory, loop: LOOP });
  await work();
  expect(await worker.stop()).toBe(0);
}

async function unsettled(): Promise<number> {
  return (
    await workshop.rows(`select id from volumes where status <> 'available' or observed->>'size_gb' <> size_gb::text`)
  ).length;
}

async function owned(): Promise<string[]> {
  const ids: string[] = [];
  for await (const { owner_id } of workshop.parts.drivers.volumes.default.list(driverContext(5_000)))
    ids.push(owner_id);
  return ids;
}
