// What git complains about, in sentences for users. Nothing of git's own words is passed on: they name paths of the host.
import { DriverError, diskFull } from '../driver';
import { SourceError, type SourceFailure } from '../source';
import type { Place } from './address';
import { GitFailed } from './command';

type Sentence = (where: string) => string;

const words: [RegExp, SourceFailure, Sentence][] = [
  [
    /Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED/,
    'refused',
    (where) => `${where} shows another host key than before. If that is right, an operator has to forget the old one.`,
  ],
  [
    /Authentication failed|could not read (Username|Password)|terminal prompts disabled|returned error: 40[13]|Permission denied \(|invalid credentials/i,
    'refused',
    (where) =>
      `${where} refused access. The repository is private or does not exist: check the address and the credentials.`,
  ],
  [
    /returned error: (404|410)|repository '.*' not found|does not appear to be a git repository|not a git repository|Repository not found|not valid: is this a git repository|does not exist|project you were looking for could not be found/i,
    'no_repository',
    (where) => `${where} has no Git repository at this address. Check the address of the repository.`,
  ],
  [
    /transport '.*' not allowed/,
    'forbidden_address',
    () => 'The way to this repository is not allowed here. Use an https or ssh address.',
  ],
  [
    /couldn't find remote ref|not our ref|unadvertised object|Server does not allow request/i,
    'unknown_commit',
    (where) => `${where} does not have this commit any more.`,
  ],
  [
    /fsck|error in object|invalid (tree|path)|bad object|missing necessary objects|did not send all necessary objects/i,
    'refused',
    (where) => `${where} sent damaged or malicious objects. Check the repository with git fsck.`,
  ],
  [
    /certificate|SSL|TLS|gnutls/,
    'unreachable',
    (where) => `${where} could not prove its identity: its TLS certificate is not valid.`,
  ],
  [/dubious ownership/, 'refused', () => 'The folder of the repository belongs to another user of this server.'],
];

/** The SourceError that a failure of git comes to. Errors that are none of git's pass as they are. */
export function explain(error: unknown, place: Place): unknown {
  if (isDiskFull(error)) return diskFull();
  if (!(error instanceof GitFailed))
    return error instanceof SourceError || error instanceof DriverError
      ? error
      : new SourceError('unreachable', 'The repository could not be read.');
  const where = place.scheme === 'file' ? 'This server' : `The host ${place.host}`;
  if (error.end === 'too_large') return tooLarge();
  if (error.end === 'time') return new SourceError('unreachable', `${where} did not give the repository in time.`);
  const known = words.find(([pattern]) => pattern.test(error.stderr));
  if (known) return new SourceError(known[1], known[2](where));
  return new SourceError('unreachable', `${where} did not answer, or broke off. Try again later.`);
}

/** Git does not always say why it could not write. */
export function isDiskFull(error: unknown): boolean {
  if (error instanceof GitFailed)
    return /No space left on device|Disk quota exceeded|unable to write (new index )?file|write error/.test(
      error.stderr,
    );
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** @param limit in MB; absent where the limit is not that of the repository */
export function tooLarge(limit?: number): SourceError {
  return new SourceError(
    'too_large',
    `The repository is larger than this platform allows${limit === undefined ? '' : ` (${limit} MB)`}. Keep large files elsewhere, or ask an operator for SOURCE_SIZE_MB.`,
  );
}
