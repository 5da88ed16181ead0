// Work that is repeated in the background: one run at a time, one line for an outage, a last run where it is asked for.
import { repeatWork, type RepeatedWork } from '../../core/process/background';
import { createLog } from '../../core/log/log';

const EVERY_MS = 5;

let warned: string[];
let repeated: RepeatedWork | undefined;
beforeEach(() => void (warned = []));
afterEach(() => repeated?.stop());

const log = createLog('warn', { write: (line: string) => void warned.push((JSON.parse(line) as { msg: string }).msg) });
const repeat = (work: () => Promise<void>): RepeatedWork =>
  (repeated = repeatWork({ name: 'test_work', everyMs: EVERY_MS, log, failure: 'it failed' }, work));

/** Resolves after so many calls of `count`. */
function counter(wanted: number): { count(): void; reached: Promise<void>; runs(): number } {
  let [runs, reach] = [0, (): void => {}];
  const reached = new Promise<void>((resolve) => void (reach = resolve));
  return { count: () => void ((runs += 1) === wanted && reach()), reached, runs: () => runs };
}

test('work is repeated, one run at a time', async () => {
  const { count, reached } = counter(4);
  let [running, most] = [0, 0];
  repeat(async () => {
    most = Math.max(most, (running += 1));
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS * 3));
    running -= 1;
    count();
  });
  await reached;
  expect(most).toBe(1);
});

test('an outage is one line of the log, and the next one another', async () => {
  const { count, reached, runs } = counter(6);
  repeat(async () => {
    count();
    if (runs() !== 3) throw new Error('away');
  });
  await reached;
  await repeated?.stop();
  expect(warned).toEqual(['it failed', 'it failed']);
});

test('stop waits for the run that is under way, and none follows', async () => {
  const { count, reached, runs } = counter(1);
  let isOver = false;
  const work = repeat(async () => {
    count();
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS * 4));
    isOver = true;
  });
  work.runNow();
  await reached;
  await work.stop();
  expect(isOver).toBe(true);
  await new Promise((resolve) => setTimeout(resolve, EVERY_MS * 4));
  expect(runs()).toBe(1);
});

test('finish runs it once more, and does not reject', async () => {
  const { count, runs } = counter(1);
  const work = repeatWork({ name: 'test_work', everyMs: 60_000, log, failure: 'it failed' }, async () => {
    count();
    throw new Error('away');
  });
  await work.finish();
  expect([runs(), warned]).toEqual([1, ['it failed']]);
});
