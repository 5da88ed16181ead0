// To a newer release, and back. The work is done by a unit of systemd, which outlives the session that asked for it.
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import semver from 'semver';
import { loadConfig } from '../../core/config';
import { settingsFileOf } from '../setup/settings_file';
import { CommandError } from '../command_error';
import type { Command, Input, Output } from './command';
import { operatorName } from './terminal_activity';
import { momentOf, controlBackupsOf } from '../upgrade/control_backup';
import { beginUpgrade } from '../upgrade/begin';
import { carryOut, outcomeOf, STEPS } from '../upgrade/carry_out';
import { currentVersion, findInstallation, versionBefore, type Installation } from '../upgrade/installation';
import { newestJournal, readJournal, type Journal } from '../upgrade/journal';
import { systemctl, UPGRADE_UNIT } from '../upgrade/service_unit';

const POLL_MS = 300;

const LOSING = 'lose-changes-since';

export const commands: Command[] = [
  {
    name: 'upgrade',
    summary:
      'Upgrade to a newer release: an archive, a version of RELEASES_URL, or the newest. It goes back by itself.',
    argument: 'file or version',
    isOptional: true,
    options: {
      status: { value: null, description: 'Show the upgrade that is under way, or the last one.' },
      'carry-out': { value: null, description: 'What platform-upgrade.service runs.' },
    },
    run: upgrade,
  },
  {
    name: 'rollback',
    summary: 'Go back to the release before. The database stays as it is.',
    options: {
      [LOSING]: {
        value: 'time',
        description:
          'Restore the backup of the control database of that time, too: projects, applications, keys and everything ' +
          'else that was changed since is lost.',
      },
    },
    run: rollback,
  },
];

async function upgrade(input: Input): Promise<Output> {
  const installation = findInstallation();
  if (input.has('carry-out')) {
    const print = (line: string): void => void process.stdout.write(`${line}\n`);
    const journal = await carryOut(installation, loadConfig(process.env), print);
    return { rows: [], ok: journal?.outcome !== 'failed' };
  }
  if (input.has('status')) {
    const journal = newestJournal(installation);
    return journal
      ? outputOf(journal)
      : { rows: [{ version: currentVersion(installation), outcome: 'never upgraded' }] };
  }
  requireRoot();
  const asked = input.argument;
  const isVersion = semver.valid(asked) === asked && asked !== '';
  const file = asked && !isVersion ? path.resolve(asked) : null;
  if (file !== null && !(existsSync(file) && statSync(file).isFile()))
    throw new CommandError(`${file} is not a file, and ${asked} is no version such as 1.2.3`);
  if (file === null && loadConfig(process.env).releasesUrl === null)
    throw new CommandError(
      `RELEASES_URL is not set in ${settingsFileOf() ?? 'the environment'}: ` +
        'set it to where releases are, or name the file of one',
    );
  return begin(installation, { kind: 'upgrade', to: isVersion ? asked : null, file, restores: null });
}

async function rollback(input: Input): Promise<Output> {
  const installation = findInstallation();
  requireRoot();
  const restores = input.text(LOSING) ?? null;
  const version = versionBefore(installation);
  if (version === null) throw new CommandError(`no release before ${currentVersion(installation)} is installed here`);
  if (restores !== null) await requireBackup(restores, version);
  return begin(installation, { kind: 'rollback', to: version, file: null, restores });
}

async function requireBackup(moment: string, version: string): Promise<void> {
  const config = loadConfig(process.env);
  if (config.databaseUrl !== null)
    throw new CommandError('the database of DATABASE_URL is not restored by this program: do it with pg_restore');
  const moments = (await controlBackupsOf(config, version)).map(momentOf);
  if (!moments.includes(moment))
    throw new CommandError(
      moments.length
        ? `there are backups of ${version} of ${moments.join(' and ')}: name one of them with --${LOSING}`
        : `there is no backup of ${version}`,
    );
}

/** Leaves it to the unit, and shows how far it is. */
async function begin(
  installation: Installation,
  wanted: Pick<Journal, 'kind' | 'to' | 'file' | 'restores'>,
): Promise<Output> {
  const journal = await beginUpgrade(installation, { ...wanted, by: operatorName() });
  return outputOf(await follow(installation, journal));
}

async function follow(installation: Installation, { kind, started_at }: Journal): Promise<Journal> {
  let shown = '';
  for (;;) {
    const last = readJournal(installation, 'last');
    if (last?.started_at === started_at) return last;
    const state = readJournal(installation, 'state');
    const at = state && `${state.step} ${state.direction}`;
    if (state && at !== null && at !== shown) {
      const title = STEPS[kind].find(({ name }) => name === state.step)?.title;
      process.stderr.write(state.direction === 'back' ? `going back: ${state.reason}\n` : `${title} …\n`);
      shown = at;
    }
    await sleep(POLL_MS);
    if (await isUnitOver(installation))
      throw new CommandError('platform-upgrade.service has ended early: `journalctl -u platform-upgrade` says why');
  }
}

/** Also after a moment, in which systemd may start it again. */
async function isUnitOver(installation: Installation): Promise<boolean> {
  for (let look = 0; look < 5; look += 1) {
    const text = await systemctl('show', UPGRADE_UNIT, '--property=ActiveState');
    if (!/=(?:inactive|failed)$/m.test(text) || readJournal(installation, 'state') === null) return false;
    await sleep(1_000);
  }
  return true;
}

function outputOf(journal: Journal): Output {
  const { from, to, outcome, started_at, ended_at, point, notes, step, direction } = journal;
  const took = ended_at && Math.round((Date.parse(ended_at) - Date.parse(started_at)) / 100) / 10;
  const rows = [
    {
      from,
      to,
      outcome,
      step: direction === 'back' ? `${step}, going back` : step,
      started_at,
      seconds: took,
      backup: point,
    },
  ];
  process.stderr.write([outcomeOf(journal), ...notes, ''].join('\n'));
  return { rows, ok: ['done', 'running'].includes(outcome) };
}

function requireRoot(): void {
  if (process.getuid?.() !== 0) throw new CommandError('run it as root: it replaces programs and restarts the service');
}
