import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Cron } from 'croner';
import { cronMistake, dueTimes, nextDue } from '../../core/protocols/cron';
import { CRON_MISTAKES } from '../support/runs/cron_cases';

/** Of each case of the reference (test/support/runs/cron_reference.py). */
const WINDOW_MS = 60 * 3_600_000;

/** The next due times, as texts. */
function next(cron: string, timeZone: string, after: string, count: number): string[] {
  const found: string[] = [];
  let at = new Date(after);
  while (found.length < count) {
    at = nextDue(cron, timeZone, at) as Date;
    found.push(at.toISOString().replace(':00.000Z', 'Z'));
  }
  return found;
}

test.each(CRON_MISTAKES)('%j is refused with what to write instead', (text, mistake) => {
  expect(cronMistake(text)).toMatch(mistake);
});

test('what is never due is known without looking for a day', () => {
  const searches = jest.spyOn(Cron.prototype, 'nextRun');
  for (const day of ['30', '30W', '31W', '30,31', '30W,31W'])
    expect(cronMistake(`0 0 ${day} 2 *`)).toMatch(/never due/);
  expect(cronMistake('0 0 31W 4,6,9,11 *')).toMatch(/never due/);
  for (const cron of ['0 0 29W 2 *', '0 0 30W 2-3 *', '0 0 30,L 2 *', '0 0 30 2 MON#5', '0 0 LW 2 *'])
    expect(cronMistake(cron)).toBeNull();
  expect(searches).not.toHaveBeenCalled();
  searches.mockRestore();
});

describe('days and months', () => {
  test.each([
    ['every five minutes', '*/5 * * * *', ['2026-11-26T12:05Z', '2026-11-26T12:10Z']],
    ['Sundays', '0 0 * * 0', ['2026-11-29T00:00Z', '2026-12-06T00:00Z']],
    ['Sundays as 7', '0 0 * * 7', ['2026-11-29T00:00Z', '2026-12-06T00:00Z']],
    ['leap days', '0 0 29 2 *', ['2028-02-29T00:00Z', '2032-02-29T00:00Z']],
    [
      'days of the month or of the week',
      '0 0 1,15 * 5',
      ['2026-11-27T00:00Z', '2026-12-01T00:00Z', '2026-12-04T00:00Z'],
    ],
    ['working days', '0 9 * * MON-FRI', ['2026-11-27T09:00Z', '2026-11-30T09:00Z']],
    ['the last day of a month', '0 0 L * *', ['2026-11-30T00:00Z', '2026-12-31T00:00Z', '2027-01-31T00:00Z']],
    ['the last Friday', '0 0 * * 5L', ['2026-11-27T00:00Z', '2026-12-25T00:00Z']],
    ['the second Friday', '0 0 * * FRI#2', ['2026-12-11T00:00Z', '2027-01-08T00:00Z']],
    [
      'the working day nearest to the 15th',
      '0 0 15W * *',
      ['2026-12-15T00:00Z', '2027-01-15T00:00Z', '2027-02-15T00:00Z'],
    ],
    ['@monthly', '@monthly', ['2026-12-01T00:00Z', '2027-01-01T00:00Z']],
  ])('%s', (_, cron, times) => {
    expect(next(cron, 'UTC', '2026-11-26T12:00:00Z', times.length)).toEqual(times);
  });

  test('a leap day is found over a century without one', () => {
    expect(next('0 0 29 2 *', 'UTC', '2096-03-01T00:00:00Z', 1)).toEqual(['2104-02-29T00:00Z']);
  });
});

describe('a clock that is set forward', () => {
  test.each([
    [
      'Europe/Berlin',
      '30 2 * * *',
      '2026-03-27T12:00:00Z',
      ['2026-03-28T01:30Z', '2026-03-29T01:00Z', '2026-03-30T00:30Z'],
    ],
    [
      'Europe/Berlin',
      '0 2 * * *',
      '2026-03-27T12:00:00Z',
      ['2026-03-28T01:00Z', '2026-03-29T01:00Z', '2026-03-30T00:00Z'],
    ],
    [
      'America/New_York',
      '30 2 * * *',
      '2026-03-06T12:00:00Z',
      ['2026-03-07T07:30Z', '2026-03-08T07:00Z', '2026-03-09T06:30Z'],
    ],
    // By half an hour, at 02:00.
    [
      'Australia/Lord_Howe',
      '15 2 * * *',
      '2026-10-01T16:00:00Z',
      ['2026-10-02T15:45Z', '2026-10-03T15:30Z', '2026-10-04T15:15Z'],
    ],
  ])('%s: %s runs at the end of the gap', (zone, cron, after, times) => {
    expect(next(cron, zone, after, times.length)).toEqual(times);
  });

  test.each([
    ['Europe/Berlin', '2026-03-29T00:00:00Z'],
    ['America/New_York', '2026-03-08T06:00:00Z'],
  ])('%s: an hourly command runs every hour that passes', (zone, after) => {
    expect(next('0 * * * *', zone, after, 4).map((at) => Date.parse(at))).toEqual(
      [1, 2, 3, 4].map((hours) => Date.parse(after) + hours * 3_600_000),
    );
  });
});

describe('lists and ranges of hours', () => {
  test.each([
    ['Europe/Berlin', '30 2,14 * * *', '2026-03-28T23:00:00Z', ['2026-03-29T01:00Z', '2026-03-29T12:30Z']],
    ['Europe/Berlin', '15,45 1-3 * * *', '2026-03-29T00:30:00Z', ['2026-03-29T00:45Z', '2026-03-29T01:00Z']],
    ['Europe/Berlin', '20 0,2 * * *', '2026-10-24T12:00:00Z', ['2026-10-24T22:20Z', '2026-10-25T00:20Z']],
    ['Europe/Berlin', '20 0,2 * * *', '2026-10-25T00:20:00Z', ['2026-10-25T23:20Z', '2026-10-26T01:20Z']],
    ['Europe/Berlin', '0-30/10 2 * * *', '2026-03-28T23:00:00Z', ['2026-03-29T01:00Z', '2026-03-30T00:00Z']],
    // The gap ends at midnight, on Sunday.
    ['America/Nuuk', '45 23 * * 6', '2026-03-28T12:00:00Z', ['2026-03-29T01:00Z', '2026-04-05T00:45Z']],
    // Every hour of the clock, and every minute of an hour that comes twice.
    ['Europe/Berlin', '*/30 2 * * *', '2026-03-28T23:00:00Z', ['2026-03-30T00:00Z', '2026-03-30T00:30Z']],
    ['Europe/Berlin', '*/30 2 * * *', '2026-10-25T00:00:00Z', ['2026-10-25T00:30Z', '2026-10-25T01:00Z']],
  ])('%s: %s after %s', (zone, cron, after, times) => {
    expect(next(cron, zone, after, times.length)).toEqual(times);
  });
});

test('due times around changes of the clock are those of the reference', () => {
  const table = readFileSync(path.join(__dirname, '../support/runs/cron_times.tsv'), 'utf8');
  const rows = table.trimEnd().split('\n');
  expect(rows.length).toBeGreaterThan(250);
  for (const row of rows) {
    const [cron = '', zone = '', from = '', minutes = ''] = row.split('\t');
    const [start, end] = [Date.parse(from), Date.parse(from) + WINDOW_MS];
    const due: number[] = [];
    let at = nextDue(cron, zone, new Date(start - 1));
    for (; at && at.getTime() <= end; at = nextDue(cron, zone, at)) due.push((at.getTime() - start) / 60_000);
    expect([cron, zone, from, due.join()]).toEqual([cron, zone, from, minutes]);
  }
});

describe('a clock that is set back', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00:00Z', ['2026-10-25T00:30Z', '2026-10-26T01:30Z']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00:00Z', ['2026-11-01T05:30Z', '2026-11-02T06:30Z']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T12:00:00Z', ['2026-04-04T14:45Z', '2026-04-05T15:15Z']],
  ])('%s: %s, which comes twice, runs once', (zone, cron, after, times) => {
    expect(next(cron, zone, after, times.length)).toEqual(times);
  });

  test('a command of every half hour runs in both hours', () => {
    expect(next('*/30 * * * *', 'Europe/Berlin', '2026-10-24T23:45:00Z', 6)).toEqual([
      ...['2026-10-25T00:00Z', '2026-10-25T00:30Z', '2026-10-25T01:00Z'],
      ...['2026-10-25T01:30Z', '2026-10-25T02:00Z', '2026-10-25T02:30Z'],
    ]);
  });
});

describe('due times of a span', () => {
  const [first, until] = [new Date('2026-11-24T02:00:00Z'), new Date('2026-11-26T12:00:00Z')];

  test('are counted, the first among them', () => {
    expect(dueTimes('0 2 * * *', 'UTC', first, until)).toEqual({
      first,
      last: new Date('2026-11-26T02:00:00Z'),
      count: 3,
    });
  });

  test('are one where the next one is later', () => {
    expect(dueTimes('0 2 * * *', 'UTC', first, first)).toEqual({ first, last: first, count: 1 });
  });

  test('of a year of minutes are not all counted, and the last one is right', () => {
    expect(dueTimes('* * * * *', 'Europe/Berlin', new Date('2025-11-26T12:00:00Z'), until)).toMatchObject({
      last: until,
      count: 1000,
    });
  });
});
