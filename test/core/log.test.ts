import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog, plainLog, type LogLevel } from '../../core/log/log';
import { compileCore, nodePath } from './compiled';

const SECRET = 'hunter2-hunter2';

function linesOf(level: LogLevel, write: (log: ReturnType<typeof createLog>) => void): Record<string, unknown>[] {
  const lines: string[] = [];
  write(createLog(level, { write: (line: string) => void lines.push(line) }));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

test('a line is JSON with time, level and message', () => {
  const [line] = linesOf('info', (log) => log.info({ operation: 'getMe', ms: 3 }, 'done'));
  expect(line).toEqual({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    operation: 'getMe',
    ms: 3,
    msg: 'done',
  });
});

test('lines below the level are left out', () => {
  expect(
    linesOf('warn', (log) => {
      log.info('no');
      log.warn('yes');
    }),
  ).toHaveLength(1);
});

test.each(['authorization', 'cookie', 'set-cookie', 'token', 'password', 'secret', 'key', 'value'])(
  '%s is hidden at every depth',
  (field) => {
    const lines = linesOf('info', (log) => {
      log.info({ [field]: SECRET });
      log.info({ request: { [field]: SECRET } });
      log.info({ request: { headers: { [field.toUpperCase()]: SECRET } } });
      log.info({ requests: [{ [field]: { inside: SECRET } }] });
      log.info(Object.assign(new Error('failed'), { [field]: SECRET, request: { [field]: SECRET } }));
      log.child({ request: { [field]: SECRET } }).info('child');
      log
        .child({ a: 1 })
        .child({ [field]: SECRET })
        .info('grandchild');
    });
    expect(lines).toHaveLength(7);
    expect(JSON.stringify(lines)).not.toContain(SECRET);
    expect(JSON.stringify(lines).match(/\[hidden\]/g)).toHaveLength(8);
  },
);

test('an error is logged with type, message and stack', () => {
  const [line] = linesOf('info', (log) => log.error(new TypeError('failed')));
  expect(line).toMatchObject({
    level: 'error',
    msg: 'failed',
    err: { type: 'TypeError', message: 'failed', stack: expect.stringContaining('log.test') },
  });
});

test('circles and depths do no harm, dates and absent fields stay', () => {
  const circle: Record<string, unknown> = { at: new Date(0), none: null, absent: undefined, list: [1, 'a'] };
  circle.self = circle;
  const [line] = linesOf('info', (log) => log.info(circle));
  expect(line).toMatchObject({ at: '1970-01-01T00:00:00.000Z', none: null, list: [1, 'a'] });
  expect(JSON.stringify(line)).toContain('[deep]');
});

test('the fields of a request line stay readable, and the logged object is left alone', () => {
  const about = { key_id: 'key_1', request_id: 'req_1', nested: { token: SECRET } };
  const [line] = linesOf('info', (log) => log.info(about));
  expect(line).toMatchObject({ key_id: 'key_1', request_id: 'req_1' });
  expect(about.nested.token).toBe(SECRET);
});

test('a plain line is what the log itself would write, at the same levels', () => {
  const fields = { operation: 'getMe', ms: 3, code: undefined, text: 'a "quoted" line\n\u2028ü' };
  const [own, plain, ...more] = linesOf('info', (log) => {
    const child = log.child({ web: 2 }).child({ part: 'x' });
    child.info(fields, 'request');
    plainLog(child).info(fields, 'request');
    log.level = 'warn';
    plainLog(log).info(fields, 'request');
  });
  expect(plain).toEqual({ ...own, time: expect.stringMatching(/^\d{4}-.*Z$/) });
  expect(plain).toMatchObject({ web: 2, part: 'x', ms: 3 });
  expect(more).toEqual([]);
});

test('lines of a process that ends at once reach standard output', () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-log-'));
  compileCore(directory, 'log/log');
  writeFileSync(
    join(directory, 'main.js'),
    `
    const log = require('./log').createLog('info');
    for (let i = 0; i < 500; i += 1) log.info({ i });
    process.exit(1);`,
  );
  const { stdout, status } = spawnSync(process.execPath, [join(directory, 'main.js')], {
    encoding: 'utf8',
    env: { ...process.env, NODE_PATH: nodePath },
  });
  rmSync(directory, { recursive: true });
  expect(status).toBe(1);
  expect(stdout.trim().split('\n')).toHaveLength(500);
});
