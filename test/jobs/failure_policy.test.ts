import { openBreaker } from '../../jobs/breaker';
import { backoffMs, failureWriteBack } from '../../jobs/failure_policy';
import { DriverError } from '../../core/driver';
import type { Claim, LoopRow } from '../../db/lease';

const claim: Claim = {
  lease: { table: 'things', id: 'a', owner: 'w', fence: 1, generation: 1 },
  row: { id: 'a', attempts: 3, deleted_at: null, driver: null } as LoopRow,
  deadlineInMs: -1,
  account: 'acc_1',
};

test('the pause doubles from 0.2 s to 60 s, give or take a half', () => {
  for (let attempts = 0; attempts < 40; attempts++) {
    const base = Math.min(60_000, 200 * 2 ** attempts);
    for (let n = 0; n < 50; n++) {
      const pause = backoffMs(attempts);
      expect(pause).toBeGreaterThanOrEqual(base * 0.5);
      expect(pause).toBeLessThanOrEqual(base * 1.5);
    }
  }
});

test('a kind without the status failed is tried for ever, at the longest pause where the values cannot work', () => {
  const job = { table: 'things', reconcile: () => Promise.reject(new Error()) };
  expect(failureWriteBack(new DriverError('transient', 'x', 90_000), job, claim)).toMatchObject({
    ending: 'failed',
    nextMs: 90_000,
    columns: {},
  });
  expect(failureWriteBack(new DriverError('invalid', 'x'), job, claim)).toMatchObject({
    ending: 'failed',
    nextMs: 60_000,
  });
});

test('rows of one account that fail open the breaker for this account alone', () => {
  const breaker = openBreaker({ threshold: 3, openMs: 10_000 });
  for (const id of ['one', 'two', 'three']) breaker.failed('git_repositories', null, id, 'acc_1');
  expect([breaker.open('git_repositories'), breaker.openFor('git_repositories')]).toEqual([[], ['acc_1']]);
  breaker.failed('git_repositories', null, 'four', 'acc_2');
  expect([breaker.open('git_repositories'), breaker.openFor('git_repositories')]).toEqual([[''], []]);
});

test('the breaker opens when several rows in a row fail, for their driver alone, and not for one bad row', async () => {
  const breaker = openBreaker({ threshold: 3, openMs: 50 });
  for (let n = 0; n < 10; n++) breaker.failed('volumes', 'directory', 'one', 'acc_1');
  expect(breaker.open('volumes')).toEqual([]);
  breaker.failed('volumes', 'directory', 'two', 'acc_2');
  breaker.succeeded('volumes', 'directory');
  breaker.failed('volumes', 'directory', 'three', 'acc_1');
  expect(breaker.open('volumes')).toEqual([]);
  for (const id of ['four', 'five']) breaker.failed('volumes', 'directory', id, 'acc_2');
  expect(breaker.open('volumes')).toEqual(['directory']);
  expect(breaker.open('domains')).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 80));
  expect(breaker.open('volumes')).toEqual([]);
  breaker.failed('volumes', 'directory', 'four', 'acc_2');
  expect(breaker.open('volumes')).toEqual(['directory']);
});
