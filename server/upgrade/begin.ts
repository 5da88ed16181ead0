// Begins an upgrade or a rollback: writes down what is to be done, and leaves it to the unit of systemd.
import path from 'node:path';
import { CommandError } from '../command_error';
import { STEPS } from './carry_out';
import { currentVersion, replaceLink, type Installation } from './installation';
import { beginJournal, discardJournal, newJournal, readJournal, type Journal } from './journal';
import { requireSystemd, systemctl, UPGRADE_UNIT } from './service_unit';

/** @throws CommandError, also where another one is under way */
export async function beginUpgrade(
  installation: Installation,
  wanted: Pick<Journal, 'kind' | 'to' | 'file' | 'restores' | 'by'>,
): Promise<Journal> {
  requireSystemd();
  const step = STEPS[wanted.kind][0]?.name as string;
  const journal = newJournal({ ...wanted, from: currentVersion(installation), step });
  if (!(await beginJournal(installation, journal))) {
    // Where it was cut off, maybe before it had the link, this ends it; where it runs, it changes nothing.
    const { from } = readJournal(installation, 'state') ?? journal;
    await linkToReleaseOf(from, installation);
    await systemctl('start', '--no-block', UPGRADE_UNIT);
    throw new CommandError('an upgrade or rollback is under way: `platform upgrade --status` shows it');
  }
  try {
    await linkToReleaseOf(journal.from, installation);
    await systemctl('start', '--no-block', UPGRADE_UNIT);
  } catch (error) {
    await discardJournal(installation);
    throw error;
  }
  return journal;
}

/** The release from which it leads away carries it out, to the end. */
function linkToReleaseOf(version: string, { staging }: Installation): Promise<void> {
  return replaceLink(path.join(staging, 'with'), path.join('..', version));
}
