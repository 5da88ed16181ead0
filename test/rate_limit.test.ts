// What counters in memory cost when somebody makes up names for them.
import { openAttempts } from '../rest/rate_limit';

const NAMES = 150_000;

// All in one minute.
beforeAll(() => void jest.useFakeTimers({ now: 0 }));
afterAll(() => void jest.useRealTimers());

it('a flood of names pushes out the oldest counters', () => {
  const attempts = openAttempts(1);
  attempts.count('first');
  expect(() => attempts.require('first')).toThrow('Too many failed attempts');
  for (let name = 0; name < NAMES; name += 1) attempts.count(`name ${name}`);
  expect(() => attempts.require(`name ${NAMES - 1}`)).toThrow('Too many failed attempts');
  expect(() => attempts.require('first')).not.toThrow();
});
