// Waiting for work no longer than a signal lasts.
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { untilAborted } from '../../../core/driver';

test('it ends with the work, or with the signal, and leaves no listener behind', async () => {
  const end = new AbortController();
  for (let turn = 0; turn < 20; turn += 1) expect(await untilAborted(end.signal, sleep(1, turn))).toBe(turn);
  await expect(untilAborted(end.signal, Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(getEventListeners(end.signal, 'abort')).toEqual([]);
  const waiting = untilAborted(end.signal, sleep(60_000, null, { ref: false }));
  end.abort();
  await expect(waiting).rejects.toMatchObject({ reason: 'transient' });
  await expect(untilAborted(end.signal, sleep(60_000, null, { ref: false }))).rejects.toMatchObject({
    reason: 'transient',
  });
  expect(getEventListeners(end.signal, 'abort')).toEqual([]);
});
