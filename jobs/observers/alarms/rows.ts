// Alarms of what rows, journals and the register of background work say.
import { toSentence } from '../../../core/sentence';
import semver from 'semver';
import type { WorkState } from '../../../core/process/background';
import type { Reading } from '../../../models/observers/installation_alarm/alarm_rules';
import { expiryWarning, type certificateFigures } from '../../../models/domains/certificate/expiry_warnings';

const HOUR_MS = 3_600_000;
/** A backup takes its time, and the next attempt comes every ten minutes. */
const LATE_HOURS = 2;

interface Journal {
  started_at: string;
  last_whole_at: string | null;
  error: string | null;
  proof: { at: string; error: string | null } | null;
}

/** @param journal null: there has been no backup. @param since when the service began to make them, in ms */
export function backupReadings(journal: Journal | null, everyHours: number, since: number, now: number): Reading[] {
  const lateMs = (everyHours + LATE_HOURS) * HOUR_MS;
  const whole = journal?.last_whole_at ?? null;
  const isLate = now - (whole === null ? since : Date.parse(whole)) > lateMs;
  const proven = journal?.proof ?? null;
  const isUnproven = proven === null ? isLate : proven.error !== null || now - Date.parse(proven.at) > lateMs;
  const last = whole === null ? 'There is none that is whole.' : `The last whole one is of ${whole}.`;
  const readings: Reading[] = [];
  if (isLate)
    readings.push({
      ...{
        name: 'backup',
        subject: '',
        title: `The installation has had no backup for ${everyHours + LATE_HOURS} hours`,
      },
      detail: [
        last,
        journal?.error && `The last attempt failed. ${toSentence(journal.error)}`,
        'Try `platform backup`.',
      ]
        .filter(Boolean)
        .join(' '),
    });
  if (isUnproven && !(isLate && proven?.error == null))
    readings.push({
      ...{ name: 'backup_proof', subject: '', title: 'The last backup of the installation is not proven' },
      detail: proven?.error
        ? `It is not usable. ${toSentence(proven.error)} Make another one with \`platform backup\`.`
        : 'It was not restored aside and compared. Try `platform backup prove`.',
    });
  return readings;
}

export function certificateReadings({ own, counts }: Awaited<ReturnType<typeof certificateFigures>>): Reading[] {
  const others = counts
    .filter(({ kind, state }) => kind !== 'platform' && state === 'expiring')
    .reduce((sum, { count }) => sum + count, 0);
  const readings = own
    .filter(({ needs_warning }) => needs_warning)
    .map((row): Reading => {
      const what = row.expires_at === null ? 'is missing' : 'ends soon and was not renewed';
      const title = `The certificate of ${row.id} ${what}`;
      return { name: 'certificate', subject: row.id, title, detail: expiryWarning(row) };
    });
  if (others)
    readings.push({
      ...{ name: 'certificate', subject: '', title: 'Certificates of domains and applications end soon' },
      detail: `${others} were not renewed. Their field \`certificate.error\` says why.`,
    });
  return readings;
}

/** A queue, and for how many seconds its oldest entry has been due. */
export interface Queue {
  name: string;
  lagSeconds: number;
}

const STUCK_SECONDS = 300;

export function queueReadings(queues: readonly Queue[]): Reading[] {
  return queues
    .filter(({ lagSeconds }) => lagSeconds > STUCK_SECONDS)
    .map(({ name, lagSeconds }) => ({
      ...{ name: 'queue', subject: name, title: `The queue of ${name} does not move` },
      detail:
        `Its oldest entry has been due for ${Math.floor(lagSeconds / 60)} minutes. See whether a worker runs, and ` +
        'what its log says.',
    }));
}

/** @param promisedMb of applications and databases together */
export function memoryReadings(promisedMb: number, totalBytes: number): Reading[] {
  const totalMb = Math.floor(totalBytes / 2 ** 20);
  if (promisedMb <= totalMb) return [];
  return [
    {
      ...{ name: 'memory', subject: '', title: 'More memory is promised than the machine has' },
      detail:
        `Applications and databases may take ${Math.round(promisedMb)} MB, the machine has ${totalMb} MB. If they ` +
        'do, the kernel kills some of them: scale down, or give the machine more memory.',
    },
  ];
}

interface NotedRelease {
  version: string;
  security: string | null;
}

export function releaseReadings(release: NotedRelease | null, version: string): Reading[] {
  if (!release?.security || !semver.gt(release.version, version)) return [];
  return [
    {
      ...{ name: 'release', subject: '', title: `Version ${release.version} has changes to security` },
      detail:
        `${release.security} Upgrade with \`platform upgrade ${release.version}\`, or on the page of the ` +
        'installation.',
    },
  ];
}

/** A run may take some time, and a busy machine delays the next one. */
const LATE_MS = 10 * 60_000;

interface Exceptions {
  /** Work that is told of elsewhere. */
  except: readonly string[];
  /** Work whose runs take hours where there is much to do, and end by themselves where they hang. */
  long: readonly string[];
}

export function backgroundReadings(works: readonly WorkState[], { except, long }: Exceptions, now: number): Reading[] {
  return works.flatMap(({ name, everyMs, lastRunAt, lastError }): Reading[] => {
    if (except.includes(name)) return [];
    const isLate = !long.includes(name) && lastRunAt !== null && now - lastRunAt > 3 * everyMs + LATE_MS;
    if (lastError === null && !isLate) return [];
    const title = `The background work ${name} ${lastError === null ? 'has stopped' : 'fails'}`;
    const detail = lastError === null ? 'See the log of the service.' : `The last error: ${lastError}.`;
    return [{ name: 'background', subject: name, title, detail }];
  });
}
