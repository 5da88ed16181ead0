/** @tier heavy @quarter 1 @covers server/backup/owner.ts server/taken_over.ts server/operator/backup.ts */
// An installation is restored on another machine while the old one runs: the old one notices, stops, and says why.
import * as fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { wholeInstallation, type WholeInstallation } from '../support/processes/whole_installation';
import { fileNeeds } from '../support/runner/programs';

fileNeeds('restic');
jest.setTimeout(600_000);

const NOTICED_MS = 60_000;
const READY_MS = 240_000;
const old = wholeInstallation();
const other = wholeInstallation(old.repository);

afterAll(async () => {
  await other.remove();
  await old.remove();
});

const isAnswering = (whole: WholeInstallation): Promise<boolean> =>
  fetch(addressOf(whole, '/healthz')).then(
    () => true,
    () => false,
  );

function addressOf(whole: WholeInstallation, target: string): string {
  return `http://127.0.0.1:${whole.service().env.PORT}${target}`;
}

async function until(what: string, ms: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + ms; !(await holds()); await sleep(200))
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms`);
}

const TAKEN_OVER = /This installation was taken over by \S+ at 20\S+Z, so it has stopped here/;

test('a restore elsewhere while the old machine runs has to be confirmed', async () => {
  await old.start();
  await old.backedUp();
  const { code, err } = other.platform(['restore']);
  expect(code).toBe(1);
  expect(err).toMatch(/has backed up to this repository \d+ s ago, so the old machine seems to run/);
  expect(fs.readdirSync(other.data)).not.toContain('postgres');
});

test('the old machine stops within a minute of it, and the new one runs', async () => {
  expect(other.platform(['restore', '--even-if-it-runs'])).toMatchObject({ code: 0 });
  await until('the end of the old one', NOTICED_MS, async () => !(await isAnswering(old)));
  await other.start({}, old.service().first);
  await until('ready', READY_MS, async () => (await fetch(addressOf(other, '/readyz'))).status === 200);
  await other.backedUp();
});

test('the old one says why: at its port, in the doctor, and to a backup', async () => {
  const { code, err } = old.platform(['backup', '--no-proof']);
  expect([code, err]).toEqual([1, expect.stringMatching(TAKEN_OVER)]);
  expect(old.platform(['doctor']).out).toMatch(TAKEN_OVER);
  const standing = old.launch();
  await until('an answer', READY_MS, () => isAnswering(old));
  const ready = await fetch(addressOf(old, '/readyz'));
  expect(ready.status).toBe(503);
  expect(await ready.json()).toEqual({ status: 'not_ready', reasons: [expect.stringMatching(TAKEN_OVER)] });
  const page = await fetch(addressOf(old, '/'));
  expect([page.status, await page.text()]).toEqual([503, expect.stringMatching(TAKEN_OVER)]);
  const ended = new Promise((resolve) => standing.on('exit', resolve));
  standing.kill('SIGTERM');
  await ended;
});

test('it takes over again when the operator says so, and the other one stops', async () => {
  expect(old.platform(['backup', 'take-over'])).toMatchObject({ code: 0 });
  await until('the end of the other one', NOTICED_MS, async () => !(await isAnswering(other)));
  await old.start();
  expect(old.platform(['backup', '--no-proof'])).toMatchObject({ code: 0 });
});

test('of two that take over at once, one owns the repository', async () => {
  await old.service().close();
  const exits = [old, other].map(
    (whole) => new Promise((resolve) => whole.begin(['backup', 'take-over']).on('exit', resolve)),
  );
  expect(await Promise.all(exits)).toEqual([0, 0]);
  const codes = [old, other].map((whole) => whole.platform(['backup', '--no-proof']).code);
  expect(codes.sort()).toEqual([0, 1]);
});

test('an installation that was never backed up there does not use the repository of another one', async () => {
  const stranger = wholeInstallation(old.repository);
  try {
    const { code, err } = stranger.platform(['backup', '--no-proof']);
    expect([code, err]).toEqual([1, expect.stringMatching(/the repository is that of an installation on \S+: choose/)]);
  } finally {
    await stranger.remove();
  }
});
