import { daysUntilFull } from '../../core/disk_trend';

const GB = 1e9;
const at = (hours: number, used: number) => ({ at: new Date(hours * 3_600_000).toISOString(), used });

test('a disk that grows steadily is full when the line says', () => {
  const samples = [0, 24, 48].map((hours) => at(hours, 50 * GB + (hours / 24) * 10 * GB));
  expect(daysUntilFull(samples, 100 * GB)).toBeCloseTo(3, 5);
});

test('a full disk is full now', () => {
  expect(daysUntilFull([at(0, 90), at(24, 100)], 100)).toBe(0);
});

test.each([
  ['no samples', []],
  ['one sample', [at(0, 1)]],
  ['a morning alone', [at(0, 1), at(5, 90)]],
  ['two at the same moment', [at(0, 1), at(0, 90)]],
  ['one that shrinks', [at(0, 90), at(24, 10)]],
  ['one that stays', [at(0, 50), at(24, 50)]],
  ['one that grows too slowly', [at(0, 50), at(24, 50.0001)]],
])('%s says nothing', (_, samples) => {
  expect(daysUntilFull(samples, 100)).toBeNull();
});

test('a removal counts from where it has led to', () => {
  const samples = [at(0, 10), at(24, 40), at(48, 70), at(72, 45)];
  expect(daysUntilFull(samples, 100)).toBeCloseTo(55 / 13.5, 5);
});
