// The one back-off. What a kind adds to it, chance or a limit that a provider told, is tested with the kind.
import { pauseMsAfter } from '../../core/process/backoff';

const limits = { firstMs: 250, maxMs: 5_000 };

test('the pause doubles with each failure, up to its limit', () => {
  expect([1, 2, 3, 4, 5, 6, 7].map((failures) => pauseMsAfter(failures, limits))).toEqual([
    250, 500, 1_000, 2_000, 4_000, 5_000, 5_000,
  ]);
});

test('any number of failures has a pause', () => {
  expect(pauseMsAfter(0, limits)).toBe(250);
  expect(pauseMsAfter(2 ** 31 - 1, limits)).toBe(5_000);
});
