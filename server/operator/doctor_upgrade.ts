// The upgrade that is under way, or the last one, where a release is installed.
import type { Finding } from './finding';
import { outcomeOf } from '../upgrade/carry_out';
import { installationOrNull } from '../upgrade/installation';
import { newestJournal } from '../upgrade/journal';

export function lastUpgrade(): Finding[] {
  const installation = installationOrNull();
  const journal = installation && newestJournal(installation);
  if (!journal) return [];
  const status = journal.outcome === 'done' || journal.outcome === 'running' ? 'ok' : 'warning';
  return [{ check: 'upgrade', status, detail: outcomeOf(journal) }];
}
