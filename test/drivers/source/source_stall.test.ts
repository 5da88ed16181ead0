// A watch that was stopped kills nothing: the number of its process may be that of another one by then.
import { setTimeout as sleep } from 'node:timers/promises';
import { watchStall } from '../../../drivers/source/stall';

/** Above the highest that Linux gives. */
const NOBODY = 2 ** 22 + 1;
const WATCH_MS = 25;

test('a watch ends with a process that is silent', async () => {
  const onStall = jest.fn();
  const stop = watchStall(NOBODY, WATCH_MS, () => Promise.resolve(0), onStall);
  for (let i = 0; i < 200 && onStall.mock.calls.length === 0; i++) await sleep(10);
  stop();
  expect(onStall).toHaveBeenCalledTimes(1);
});

test('stopped while it looks, it neither kills nor looks again', async () => {
  for (const last of [1, 5]) {
    const onStall = jest.fn();
    let looks = 0;
    let stop = (): void => {};
    const stopped = new Promise<void>((resolve) => {
      const bytes = async (): Promise<number> => {
        looks += 1;
        if (looks < last) return 0;
        stop();
        resolve();
        await sleep(5);
        return 0;
      };
      stop = watchStall(NOBODY, WATCH_MS, bytes, onStall);
    });
    await stopped;
    await sleep(4 * WATCH_MS);
    expect([looks, onStall.mock.calls.length]).toEqual([last, 0]);
  }
});
