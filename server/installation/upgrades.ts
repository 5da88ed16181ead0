// Upgrades and rollbacks that an operator starts in the dashboard: the service writes the journal that the command
// writes, and the unit carries it out.
import type { Config } from '../../core/config';
import { problem } from '../../core/errors';
import { toSentence } from '../../core/sentence';
import type { InstallationControl, UpgradeProgress } from '../../core/catalog/installation_control';
import { CommandError } from '../command_error';
import { beginUpgrade } from '../upgrade/begin';
import { outcomeOf, STEPS } from '../upgrade/carry_out';
import { findInstallation, installationOrNull, versionBefore } from '../upgrade/installation';
import { newestJournal, type Journal } from '../upgrade/journal';
import { requireSystemd } from '../upgrade/service_unit';
import { isSetupRunning } from './setups';

type Upgrades = Pick<
  InstallationControl,
  'upgradeObstacle' | 'versionBefore' | 'lastUpgrade' | 'beginUpgrade' | 'beginRollback'
>;

export function upgradesOf(config: Pick<Config, 'releasesUrl'>): Upgrades {
  return {
    upgradeObstacle: obstacle,
    versionBefore() {
      const installation = installationOrNull();
      return installation && versionBefore(installation);
    },
    lastUpgrade() {
      const installation = installationOrNull();
      const journal = installation && newestJournal(installation);
      return journal && progressOf(journal);
    },
    async beginUpgrade(version) {
      requireNoObstacle();
      if (config.releasesUrl === null) throw problem('engine_unavailable', 'RELEASES_URL is not set any more.');
      await begin({ kind: 'upgrade', to: version, file: null, restores: null });
    },
    async beginRollback() {
      requireNoObstacle();
      await begin({ kind: 'rollback', to: versionBefore(findInstallation()), file: null, restores: null });
    },
  };
}

function obstacle(): string | null {
  try {
    findInstallation();
    requireSystemd();
  } catch (error) {
    if (error instanceof CommandError) return toSentence(error.message);
    throw error;
  }
  if (process.getuid?.() !== 0)
    return 'The service does not run as root, so it cannot replace its programs: run the command as root.';
  return null;
}

/** @throws engine_unavailable */
function requireNoObstacle(): void {
  const reason = obstacle();
  if (reason !== null) throw problem('engine_unavailable', reason);
}

/** @throws invalid_state */
async function begin(wanted: Pick<Journal, 'kind' | 'to' | 'file' | 'restores'>): Promise<void> {
  if (await isSetupRunning())
    throw problem('invalid_state', 'The domain is being set up. Begin again when that has ended.');
  try {
    await beginUpgrade(findInstallation(), wanted);
  } catch (error) {
    if (error instanceof CommandError) throw problem('invalid_state', toSentence(error.message));
    throw error;
  }
}

function progressOf(journal: Journal): UpgradeProgress {
  const { kind, from, to, outcome, notes, point: backup, started_at, ended_at } = journal;
  return { ...{ kind, from, to, outcome, notes, backup, started_at, ended_at }, ...progress(journal) };
}

function progress(journal: Journal): Pick<UpgradeProgress, 'summary' | 'steps'> {
  const steps = STEPS[journal.kind];
  const at = steps.findIndex(({ name }) => name === journal.step);
  const stateAt = journal.direction === 'back' ? 'failed' : 'running';
  const stateOf = (index: number): UpgradeProgress['steps'][number]['state'] => {
    if (journal.outcome === 'done' || index < at) return 'done';
    return index === at ? stateAt : 'open';
  };
  return { summary: outcomeOf(journal), steps: steps.map(({ title }, index) => ({ title, state: stateOf(index) })) };
}
