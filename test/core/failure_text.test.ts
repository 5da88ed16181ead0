// What programs print about their failures, as tenants read it.
import { failureTextOf } from '../../core/log/failure_text';

test.each([
  ['', null],
  ['\n\n', null],
  [
    'pg_dump: warning: there are circular foreign-key constraints\npg_dump: error: query failed: ' +
      'ERROR:  out of shared memory\nHINT:  You might need to increase max_locks_per_transaction.\n' +
      'pg_dump: detail: Query was: LOCK TABLE a.b\nmore',
    'pg_dump: error: query failed: ERROR: out of shared memory HINT: You might need to increase ' +
      'max_locks_per_transaction. pg_dump: detail: Query was: LOCK TABLE a.b',
  ],
  [
    'gzip: stdin: unexpected end of file\ntar: Error is not recoverable: exiting now',
    'gzip: stdin: unexpected end of file',
  ],
  ['could not open "/var/lib/x/base/1": No such file', 'could not open "…": No such file'],
  ['tar: /srv/data/pg_wal: Cannot open', 'tar: …: Cannot open'],
  ['FATAL: connection to postgres://app:hunter2@db.example.com/app failed', /postgres:\/\/…@db\.example\.com\/app/],
  ['error: password=hunter2 host=x', 'error: password=… host=x'],
  ["ERROR: syntax error in alter role app password 'hunter2'", 'ERROR: syntax error in alter role app password …'],
  ['ERROR: password authentication failed for user "app"', 'ERROR: password authentication failed for user "app"'],
  ['ERROR: relation "a/b" of 1/2 rows', 'ERROR: relation "a/b" of 1/2 rows'],
  ['ERROR: a\u0000b\u001b[31m c', 'ERROR: a b [31m c'],
])('%j', (text, expected) => {
  if (expected instanceof RegExp) expect(failureTextOf(text)).toMatch(expected);
  else expect(failureTextOf(text)).toBe(expected);
});

test('is one line of 300 characters at most', () => {
  const words = failureTextOf(`ERROR: ${'x'.repeat(1_000)}\nDETAIL: ${'y'.repeat(1_000)}`)!;
  expect([words.length, words.endsWith('…'), words.includes('\n')]).toEqual([300, true, false]);
});

test.each([
  ['blanks', `ERROR: password${' '.repeat(60_000)}x`],
  ['names', `ERROR: ${'a.'.repeat(30_000)}`],
  ['lines', `${`detail: secret${' '.repeat(200)}`.repeat(300)}\n`.repeat(3)],
])('%s of a tenant take no time', (_, text) => {
  const since = performance.now();
  expect(failureTextOf(text)!.length).toBeLessThanOrEqual(300);
  expect(performance.now() - since).toBeLessThan(200);
});

test('an address that is cut shows no password', () => {
  const address = `postgres://app:${'hunter2'.repeat(20)}`;
  expect(failureTextOf(`ERROR: ${'/a '.repeat(300)}${address}@db.example.com`)).not.toContain('hunter');
});
