import { createRequire } from 'node:module';
import type * as Ids from '../../core/ids';

// Of its own: what it makes of clocks that are set must not reach the tests after it.
const { isId, mintId, mintRequestId, timeOfId } = ownCopy<typeof Ids>(require.resolve('../../core/ids'));

function ownCopy<T>(file: string): T {
  const shared = require.cache[file];
  delete require.cache[file];
  const own = createRequire(__filename)(file) as T;
  if (shared) require.cache[file] = shared;
  else delete require.cache[file];
  return own;
}

afterEach(() => jest.restoreAllMocks());

test('an id has the form of the contract', () => {
  expect(mintId('vol')).toMatch(/^vol_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(mintRequestId()).toMatch(/^req_[0-9a-hjkmnp-tv-z]{26}$/);
});

test('ids are unique and sort in the order of their making', () => {
  const ids = Array.from({ length: 50_000 }, () => mintId('vol'));
  expect(new Set(ids).size).toBe(ids.length);
  expect([...ids].sort()).toEqual(ids);
});

test('the order holds when the clock steps back', () => {
  const now = Date.now() + 60_000;
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now);
  const before = mintId('vol');
  clock.mockReturnValue(now - 30_000);
  const after = [mintId('vol'), mintId('vol')] as const;
  clock.mockReturnValue(now + 1);
  const ids = [before, ...after, mintId('vol')];
  expect([...ids].sort()).toEqual(ids);
  expect(timeOfId(after[1]).getTime()).toBe(now);
});

test('the clock of an id is that of its making', () => {
  for (const ms of [Date.now() + 200_000, 4_102_444_800_000, 2 ** 48 - 1]) {
    jest.spyOn(Date, 'now').mockReturnValue(ms);
    expect(timeOfId(mintId('app')).getTime()).toBe(ms);
  }
});

test('timeOfId refuses what is no id', () => {
  for (const text of ['', 'vol_', 'vol_0123', `vol_${'u'.repeat(26)}`])
    expect(() => timeOfId(text)).toThrow(RangeError);
});

test.each([
  [`vol_${'0'.repeat(26)}`, true],
  [`vol_${'z'.repeat(26)}`, true],
  [`vol_${'0'.repeat(25)}`, false],
  [`vol_${'0'.repeat(27)}`, false],
  [`vol_${'0'.repeat(25)}\n`, false],
  [`vol_${'0'.repeat(25)}u`, false],
  [`vol_${'0'.repeat(25)}A`, false],
  [`app_${'0'.repeat(26)}`, false],
  [`vol-${'0'.repeat(26)}`, false],
  [`VOL_${'0'.repeat(26)}`, false],
  ['', false],
  [null, false],
  [7, false],
])('isId of %j is %s', (value, expected) => {
  expect(isId('vol', value)).toBe(expected);
});
