import { EMPTY_SNAPSHOT, parseReadPosition, formatReadPosition, raiseSnapshot } from '../../core/protocols/snapshot';

describe('a place', () => {
  it.each(['1:1:', '100:120:100,105', '1:1:|100:120:100|100.7'])('%s is read and written', (text) => {
    expect(formatReadPosition(parseReadPosition(text)!)).toBe(text);
  });

  it.each([
    '',
    'x',
    '0:1:',
    '2:1:',
    '1:5:5',
    '2:5:1',
    '1:9:4,3',
    '1:9:4,',
    '1:1:|',
    '1:1:|1:1:',
    '1:1:|1:1:|1',
    '1:1:|1:1:|1.1|',
    '1:1:|0:0:|1.1',
  ])('%j is none', (text) => {
    expect(parseReadPosition(text)).toBeNull();
  });
});

describe('a raised snapshot', () => {
  it.each<[string, bigint, string]>([
    ['100:120:100,105,110', 0n, '100:120:100,105,110'],
    ['100:120:100,105,110', 104n, '105:120:105,110'],
    ['100:120:100,105,110', 115n, '115:120:'],
    ['100:120:100', 200n, '120:120:'],
    [EMPTY_SNAPSHOT, 1n, EMPTY_SNAPSHOT],
  ])('%s above %s is %s', (snapshot, floor, expected) => {
    expect(raiseSnapshot(snapshot, floor)).toBe(expected);
    expect(parseReadPosition(expected)).not.toBeNull();
  });
});
