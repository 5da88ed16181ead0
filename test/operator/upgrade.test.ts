/** @tier heavy @quarter 2 @covers server/operator/upgrade.ts server/upgrade tools/release/install.sh */
// Upgrades and rollbacks of an installation, killed at steps that change something.
import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { version } from '../../package.json';
import {
  canInstall,
  installRelease,
  installing,
  startingWith,
  type Installed,
  type Journal,
} from '../support/processes/installed';
import { ROOT } from '../support/runner/repository';

jest.setTimeout(900_000);
const asRoot = installing();
const [NEXT, THIRD, FAILING] = ['1.0.1', '1.0.2', '1.0.3'];
const START_THAT_FAILS = startingWith('process.exit(1);');

let machine: Installed;
let archive: string;
beforeAll(async () => {
  if (!canInstall) return;
  machine = await installRelease();
  archive = await machine.archive(NEXT);
});
afterAll(() => machine?.close());

asRoot('goes to the newer release with a backup, says what it did, and goes back', async () => {
  const up = await machine.run(`platform upgrade ${archive}`);
  expect(up.err + up.out).toContain(`The upgrade from ${version} to ${NEXT} is done.`);
  expect(up.code).toBe(0);
  expect([await machine.current(), await machine.served()]).toEqual([NEXT, NEXT]);
  const last = await machine.journal('last');
  expect(last?.well).toEqual(
    expect.arrayContaining(['background work', 'API', 'GraphQL', 'ingress', 'object storage', 'registry']),
  );
  const { out } = await machine.run(`cat ${last?.point}/data-*/backup_label; platform upgrade --status --json`);
  expect(out).toContain('LABEL: upgrade');
  expect(out).toContain('"outcome": "done"');
  const back = await machine.run('platform rollback');
  expect(back.err).toContain(`The rollback from ${NEXT} to ${version} is done.`);
  expect([await machine.current(), await machine.served()]).toEqual([version, version]);
  expect((await machine.run('platform rollback')).err).toContain(`no release before ${version} is installed here`);
});

interface Killed {
  step: string;
  afterMs?: number;
  direction?: 'forward' | 'back';
  /** With everything else on the machine, which is started again then. */
  all?: boolean;
}

/** Gives the command, kills what carries it out once, and waits for its end. */
async function killedOnce(
  command: string,
  { step, afterMs = 0, direction = 'forward', all = false }: Killed,
): Promise<Journal> {
  const mark = path.join(mkdtempSync(path.join(machine.directory, 'killed-')), step);
  const env = {
    NODE_OPTIONS: `--require ${ROOT}/test/support/processes/kill_at_step.js`,
    ...{ KILL_AT: step, KILL_AFTER_MS: String(afterMs), KILL_DIRECTION: direction, KILLED: mark },
    ...(all && { KILL_ALL: '1' }),
  };
  await machine.run(`platform ${command}`, env);
  if (all) await machine.startMachine();
  const last = await machine.waitUntilEnded();
  expect((await machine.run(`cat ${mark}`)).out).toBe(step);
  return last;
}

/** One version is there, serves, and nothing is left of what was killed. */
async function expectWhole(expected: string, others: string[]): Promise<void> {
  await machine.waitUntilServed(expected);
  expect(await machine.current()).toBe(expected);
  const { out } = await machine.run('ls -A /opt/platform/.upgrade; ls /opt/platform');
  expect(out.split('\n').filter(Boolean).sort()).toEqual(
    ['last.json', 'lock', 'with', 'current', 'node_modules', expected, ...others].sort(),
  );
  const data = '/var/lib/platform-api';
  expect((await machine.run(`ls -A ${data}/upgrades ${data}/postgres`)).out).not.toMatch(/\.new/);
}

asRoot.each<[string, Killed]>([
  ['killed while it unpacks', { step: 'unpack', afterMs: 150 }],
  ['killed at the doctor', { step: 'doctor' }],
  ['killed while it backs up', { step: 'backup', afterMs: 150 }],
  ['killed when all is prepared', { step: 'measure' }],
  ['cut off from power while it unpacks', { step: 'unpack', afterMs: 150, all: true }],
  ['cut off from power while it backs up', { step: 'backup', afterMs: 150, all: true }],
])('an upgrade that is %s is undone', async (_, killed) => {
  await machine.run(`rm -rf /opt/platform/${NEXT}`);
  const { outcome, notes, reason } = await killedOnce(`upgrade ${archive}`, killed);
  expect([outcome, notes, reason]).toEqual(['undone', [], expect.stringMatching(/^it was cut off while it was to /)]);
  await expectWhole(version, []);
});

// Each goes on, so that the way back is that of the next one.
asRoot.each<[Killed, Killed]>([
  [{ step: 'fetch' }, { step: 'target' }],
  [{ step: 'switch' }, { step: 'switch', afterMs: 150 }],
  [{ step: 'restart', afterMs: 500 }, { step: 'watch' }],
  [{ step: 'watch' }, { step: 'restart' }],
  [
    { step: 'switch', afterMs: 50, all: true },
    { step: 'restart', afterMs: 300, all: true },
  ],
])('an upgrade killed at $0.step and a rollback killed at $1.step end as they should', async (up, down) => {
  const there = await killedOnce(`upgrade ${archive}`, up);
  expect([there.outcome, there.notes, there.reason]).toEqual(['done', [], null]);
  await expectWhole(NEXT, [version]);
  const back = await killedOnce('rollback', down);
  expect([back.outcome, back.notes, back.reason]).toEqual(['done', [], null]);
  await expectWhole(version, [NEXT]);
});

asRoot('an upgrade killed at its end is done, and a rollback killed before its first change is not made', async () => {
  expect((await killedOnce(`upgrade ${archive}`, { step: 'tidy' })).outcome).toBe('done');
  await expectWhole(NEXT, [version]);
  expect((await killedOnce('rollback', { step: 'measure' })).outcome).toBe('undone');
  await expectWhole(NEXT, [version]);
});

asRoot.each([
  [0, false],
  [100, false],
  [50, true],
])('a restore killed %d ms into it ends with the backup (power cut: %s)', async (afterMs, all) => {
  if ((await machine.current()) === version) await machine.run(`platform upgrade ${archive}`);
  await machine.run(`platform project create --user owner@example.com --name Killed${afterMs}`);
  const back = await killedOnce(`rollback --lose-changes-since ${await newestBackup()}`, {
    step: 'restore',
    afterMs,
    all,
  });
  expect([back.outcome, back.notes, back.reason]).toEqual(['done', [], null]);
  await expectWhole(version, [NEXT]);
  expect((await machine.run('platform project list')).out).not.toContain(`Killed${afterMs}`);
});

asRoot('an upgrade whose command was killed before it could hand it over is made by the next one', async () => {
  await machine.run(`if [ $(readlink /opt/platform/current) = ${NEXT} ]; then platform rollback; fi`);
  const begun = { ...(await machine.journal('last')), kind: 'upgrade', from: version, to: null, file: archive };
  const fresh = { sha256: null, step: 'fetch', direction: 'forward', reason: null, notes: [], well: [], point: null };
  const rest = {
    restores: null,
    unpacked: false,
    ended_at: null,
    outcome: 'running',
    started_at: '2026-11-29T00:00:00Z',
  };
  const text = JSON.stringify({ ...begun, ...fresh, ...rest });
  await machine.run(`cd /opt/platform/.upgrade && rm with && echo '${text}' >state.json`);
  const again = await machine.run(`platform upgrade ${archive}`);
  expect(again.err).toContain('an upgrade or rollback is under way');
  expect((await machine.waitUntilEnded()).outcome).toBe('done');
  await expectWhole(NEXT, [version]);
  await machine.run('platform rollback');
});

asRoot('an upgrade killed on its way back goes on with it', async () => {
  const failing = await machine.archive(FAILING, START_THAT_FAILS);
  const { outcome, notes, reason } = await killedOnce(`upgrade ${failing}`, { step: 'watch', direction: 'back' });
  expect([outcome, notes]).toEqual(['undone', []]);
  expect(reason).toContain(`${FAILING} ends again and again`);
  await expectWhole(version, [NEXT]);
});

asRoot('keeps the last two backups and the release before, and restores a backup where told what is lost', async () => {
  await machine.run(`platform upgrade ${archive}`);
  await machine.run(`platform project create --user owner@example.com --name Since`);
  const third = await machine.archive(THIRD);
  expect((await machine.run(`platform upgrade ${third}`)).code).toBe(0);
  await expectWhole(THIRD, [NEXT]);
  expect((await machine.run('ls /var/lib/platform-api/upgrades')).out.trim().split('\n')).toEqual([
    expect.stringMatching(/Z-1\.0\.0$/),
    expect.stringMatching(/Z-1\.0\.1$/),
  ]);
  await machine.run(`platform project create --user owner@example.com --name Lost`);
  const back = await machine.run(`platform rollback --lose-changes-since ${await newestBackup()}`);
  expect(back.err).toContain(`The rollback from ${THIRD} to ${NEXT} is done.`);
  const { out } = await machine.run('platform project list');
  expect([out.includes('Since'), out.includes('Lost')]).toEqual([true, false]);
});

/** As the command itself names it. */
async function newestBackup(): Promise<string> {
  const { err } = await machine.run('platform rollback --lose-changes-since yesterday');
  const [, moment] = /backups of \S+ of (\S+?Z)(?: and \S+)?: name/.exec(err) ?? [];
  return moment as string;
}
