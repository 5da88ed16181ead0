// Begins an upgrade or a rollback: writes down what is to be done, and leaves it to the unit of systemd.
import path from 'node:path';
import { CommandError } from '../command_error';
import { STEPS } from './carry_out';
import { currentVersion, replaceLink, type Installation } from './installation';
import { beginJournal, discardJournal, newJournal, type Journal } from './journal';
import { requireSystemd, systemctl, UPGRADE_UNIT } from './service_unit';

/** @throws CommandError, also where another one is under way */
export async function beginUpgrade(
  installation: Installation,
  wanted: Pick<Journal, 'kind' | 'to' | 'file' | 'restores'>,
): Promise<Journal> {
  requireSystemd();
  const step = STEPS[wanted.kind][0]?.name as string;
  const journal = newJournal({ ...wanted, from: currentVersion(installation), step });
  if (!(await beginJournal(installation, journal))) {
    // Where it was cut off, this ends it; where it runs, it changes nothing.
    await systemctl('start', '--no-block', UPGRADE_UNIT);
    throw new CommandError('an upgrade or rollback is under way: `platform upgrade --status` shows it');
  }
  try {
    await replaceLink(path.join(installation.staging, 'with'), path.join('..', journal.from));
    await systemctl('start', '--no-block', UPGRADE_UNIT);
  } catch (error) {
    await discardJournal(installation);
    throw error;
  }
  return journal;
}
