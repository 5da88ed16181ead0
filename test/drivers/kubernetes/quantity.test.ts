import { parseQuantity } from '../../../drivers/kubernetes/client/quantity';

test.each([
  ['250m', 0.25],
  ['12345678n', 0.012_345_678],
  ['2', 2],
  ['1.5', 1.5],
  ['1e3', 1000],
  ['128Ki', 131_072],
  ['512Mi', 536_870_912],
  ['1G', 1_000_000_000],
  ['1Gi', 1_073_741_824],
])('%s is %d', (text, value) => {
  expect(parseQuantity(text)).toBeCloseTo(value, 9);
});

test.each(['', 'Gi', '1Zi', '1 Gi', 'one', '--1', '1.2.3'])('%p is no amount', (text) => {
  expect(parseQuantity(text)).toBeNull();
});
