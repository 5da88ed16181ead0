/** @tier heavy @quarter 2 @covers server/operator/upgrade.ts server/operator/upgrade tools/release/install.sh */
// Upgrades and rollbacks of an installation, killed at each of their steps.
import path from 'node:path';
import { version } from '../../package.json';
import { STEPS } from '../../server/operator/upgrade/carry_out';
import { FIRST_CHANGE } from '../../server/operator/upgrade/step';
import { installRelease, type Installed } from '../support/processes/installed';
import { named } from '../support/runner/programs';
import { hasProgram } from '../support/runner/has_program';
import { ROOT } from '../support/runner/repository';

jest.setTimeout(900_000);
/** Steps that take a while. */
const IN_THE_MIDDLE = ['unpack', 'backup', 'switch'];
const [NEXT, THIRD] = ['1.0.1', '1.0.2'];
const canRun = process.getuid?.() === 0 && ['unshare', 'nsenter', 'flock', 'tar'].every(hasProgram);
const asRoot = (canRun ? test : named(test.skip, ' (needs: root)')) as jest.It;

let machine: Installed;
let archive: string;
beforeAll(async () => {
  if (!canRun) return;
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

asRoot('keeps the last two backups and the release before, and restores a backup where told what is lost', async () => {
  await machine.run(`platform upgrade ${archive}`);
  await machine.run(`platform project create --user owner@example.com --name Since`);
  const third = await machine.archive(THIRD);
  expect((await machine.run(`platform upgrade ${third}`)).code).toBe(0);
  const listed = await machine.run('ls /opt/platform; ls /var/lib/platform-api/upgrades');
  expect(listed.out.split('\n')).toEqual(
    expect.arrayContaining([
      NEXT,
      THIRD,
      'current',
      expect.stringMatching(/Z-1\.0\.0$/),
      expect.stringMatching(/Z-1\.0\.1$/),
    ]),
  );
  await machine.run(`platform project create --user owner@example.com --name Lost`);
  const asked = await machine.run('platform rollback --lose-changes-since yesterday');
  const [, moment] = /backups of 1\.0\.1 of (\S+): name/.exec(asked.err) ?? [];
  const back = await machine.run(`platform rollback --lose-changes-since ${moment}`);
  expect(back.err).toContain(`The rollback from ${THIRD} to ${NEXT} is done.`);
  const { out } = await machine.run('platform project list');
  expect([out.includes('Since'), out.includes('Lost')]).toEqual([true, false]);
  await machine.run(
    `systemctl stop platform.service; cd /opt/platform && ln -sfn ${version} current && rm -r ${THIRD}`,
  );
  await machine.run(`platform version; ls /opt/platform`);
});

describe.each(['upgrade', 'rollback'] as const)('%s', (kind) => {
  asRoot.each(STEPS[kind].map(({ name }) => name))(
    'is killed at %s: it ends or is undone, and one version serves',
    async (step) => {
      const [from, to] = await prepare(kind);
      for (const after of IN_THE_MIDDLE.includes(step) ? ['0', '150'] : ['0']) {
        if ((await machine.current()) !== from) await prepare(kind);
        const killed = path.join(machine.directory, `killed-${kind}-${step}-${after}`);
        const env = {
          NODE_OPTIONS: `--require ${ROOT}/test/support/processes/kill_at_step.js`,
          ...{ KILL_AT: step, KILL_AFTER_MS: after, KILLED: killed },
        };
        const words = kind === 'upgrade' ? `upgrade ${archive}` : 'rollback';
        await machine.run(`platform ${words}`, env);
        const last = await machine.waitUntilEnded();
        expect((await machine.run(`cat ${killed}`)).out).toBe(step);
        const steps = STEPS[kind].map(({ name }) => name);
        const isBefore = steps.indexOf(step) < steps.indexOf(FIRST_CHANGE);
        const expected = isBefore && step !== steps[0] && last.outcome !== 'done' ? 'undone' : 'done';
        expect([last.outcome, last.notes, expected === 'done' ? last.reason : null]).toEqual([expected, [], null]);
        await machine.waitUntilServed(expected === 'done' ? (to as string) : (from as string));
        expect(await machine.current()).toBe(expected === 'done' ? to : from);
        const left = await machine.run('ls -A /opt/platform/.upgrade /var/lib/platform-api/upgrades');
        expect(left.out).not.toMatch(/archive|unpacking|\.new/);
      }
    },
  );
});

/** @returns versions: that which runs, and that to which it shall go */
async function prepare(kind: 'upgrade' | 'rollback'): Promise<[string, string]> {
  const [from, to] = kind === 'upgrade' ? [version, NEXT] : [NEXT, version];
  if ((await machine.current()) !== from || (await machine.served()) !== from) {
    const words = kind === 'upgrade' ? 'rollback' : `upgrade ${archive}`;
    const { err } = await machine.run(`systemctl start platform.service; platform ${words}`);
    if ((await machine.current()) !== from) throw new Error(err);
  }
  await machine.waitUntilServed(from);
  return [from, to];
}
