// A loop over volumes with a job of the test.
import { defineStates } from '../../../core/states';
import { settled, type Job, type LoopRow } from '../../../jobs/job';
import { startLoop, type Loop, type LoopOptions } from '../../../jobs/loop';
import { openWorkshop, type Workshop } from '../runner/workshop';

export const states = defineStates({
  initial: ['provisioning'],
  transitional: ['provisioning'],
  moves: { provisioning: ['available', 'failed'], available: ['failed'], failed: ['available', 'provisioning'] },
});

export let workshop: Workshop;

export let loop: Loop | undefined;

/** A loop that is stopped after the test. */
export function runLoop(options: Parameters<typeof startLoop>[1]): Loop {
  return (loop = startLoop(workshop.parts, options));
}

/** A loop over the table of volumes with a job made for the test. */
export function start(reconcile: Job['reconcile'], job: Partial<Job> = {}, options: Partial<LoopOptions> = {}): void {
  runLoop({ pollMs: 100, ...options, jobs: [{ table: 'volumes', states, ...job, reconcile }] });
}

export async function statusOf(id: string): Promise<string | undefined> {
  return (await workshop.row<LoopRow>('volumes', id))?.status;
}

export const ready = settled({ status: 'available', status_reason: null });

/** To be called where tests are declared. */
export function setUpLoop(): void {
  beforeAll(async () => (workshop = await openWorkshop()));
  afterEach(async () => {
    await loop?.stop();
    loop = undefined;
    await workshop.rows('delete from volumes');
  });
  afterAll(() => workshop.close());
}
