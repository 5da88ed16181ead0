/** @tier heavy @quarter 4 @covers server/backup/wal.ts server/backup/recover.ts server/backup/restore.ts */
// The service is killed while it brings its log to the repository, and a restore at each moment of the replay.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { wholeInstallation } from '../support/processes/whole_installation';
import { fileNeeds } from '../support/runner/programs';

fileNeeds('restic');
jest.setTimeout(900_000);

const READY_MS = 240_000;
const whole = wholeInstallation();
const pushed = path.join(whole.data, 'backup/wal-pushed.json');
const steps = path.join(whole.data, 'restore.json');
const log = path.join(whole.repository.RESTIC_REPOSITORY as string, 'wal');

afterAll(() => whole.remove());

const restic = (...words: string[]): string =>
  execFileSync('restic', ['--repo', log, '--no-cache', ...words], {
    env: { ...process.env, RESTIC_PASSWORD_FILE: whole.repository.RESTIC_PASSWORD_FILE },
    encoding: 'utf8',
  });

function until(what: string, holds: () => boolean): Promise<void> {
  return (async () => {
    for (const end = Date.now() + READY_MS; !holds(); await sleep(50))
      if (Date.now() > end) throw new Error(`${what}: not within ${READY_MS} ms`);
  })();
}

const read = (): { until: string } | null =>
  fs.existsSync(pushed) ? (JSON.parse(fs.readFileSync(pushed, 'utf8')) as { until: string } | null) : null;

/** Whether restic runs with the repository of the log. */
function isPushing(): boolean {
  return fs.existsSync(path.join(log, 'locks')) && fs.readdirSync(path.join(log, 'locks')).length > 0;
}

test('killed while it pushes, the service goes on at its next start, and the repository is whole', async () => {
  await whole.start();
  await until('a push', () => read() !== null);
  await whole.backedUp();
  const before = read()!.until;
  await whole.service().call('POST', '/v2/projects', { name: 'first' });
  await until('a push under way', () => isPushing());
  await whole.kill();
  await whole.start();
  await whole.service().call('POST', '/v2/projects', { name: 'second' });
  const written = new Date().toISOString();
  await until('the next push', () => (read()?.until ?? '') > written);
  expect(read()!.until > before).toBe(true);
  // The lock of the killed push is in the way of no other one, and gone with the next backup.
  expect(restic('check', '--read-data', '--no-lock')).toContain('no errors were found');
});

test('a lock that a killed run of restic has left keeps neither a push nor a backup waiting', () => {
  const killed = spawn('restic', ['--repo', log, '--no-cache', 'check', '--read-data'], {
    env: { ...process.env, RESTIC_PASSWORD_FILE: whole.repository.RESTIC_PASSWORD_FILE },
    stdio: 'ignore',
  });
  while (!isPushing()) spawnSync('sleep', ['0.02']);
  killed.kill('SIGKILL');
  const { code, out, err } = whole.platform(['backup', '--no-proof', '--json']);
  expect([code, err]).toEqual([0, expect.any(String)]);
  expect(JSON.parse(out).data[0].point).toEqual(expect.any(String));
});

test.each([0, 300, 800, 1_500])('a restore that is killed %d ms into the replay goes on', async (ms) => {
  await whole.service().call('POST', '/v2/projects', { name: `p${ms}` });
  const written = new Date().toISOString();
  await until('a push', () => (read()?.until ?? '') > written);
  await whole.destroy();
  const child = whole.begin(['restore', '--even-if-it-runs']);
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const done = (): string[] => {
    try {
      return JSON.parse(fs.readFileSync(steps, 'utf8')).done;
    } catch {
      return [];
    }
  };
  await until('the step before', () => done().includes('volumes') || child.exitCode !== null);
  await sleep(ms);
  if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGKILL');
  await ended;
  const again = whole.platform(['restore', '--even-if-it-runs']);
  expect([again.code, again.err]).toEqual([0, expect.any(String)]);
  await whole.start();
  const { data } = await whole.service().call('GET', '/v2/projects?limit=100');
  expect(data.map(({ name }: { name: string }) => name)).toEqual(expect.arrayContaining(['second', `p${ms}`]));
  await until('a push after it', () => read() !== null);
});
