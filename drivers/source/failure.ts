// Converts errors of git to messages for users. The output of git itself is never passed on: it contains host paths.
import { DriverError, diskFull, isDiskFull, saysDiskFull } from '../../core/driver';
import { SourceError, type SourceFailure } from '../source';
import type { RemoteEndpoint } from './address';
import { GitFailed } from './command';

type Explanation = (where: string, isPinned: boolean) => string;

const ASK_OPERATOR = 'ask the operator to remove the old one.';

const explanations: [RegExp, SourceFailure, Explanation][] = [
  [
    /Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED/,
    'refused',
    (where, isPinned) =>
      `${where} shows a different host key than before. If the host has a new key, ` +
      (isPinned ? 'rotate the deploy key of the repository, which forgets the old one.' : ASK_OPERATOR),
  ],
  [
    anyOf(
      'Authentication failed|could not read (Username|Password)|terminal prompts disabled',
      'returned error: 40[13]|Permission denied \\(|invalid credentials',
    ),
    'refused',
    (where) =>
      `${where} refused access. The repository is private or does not exist: check the address and the credentials.`,
  ],
  [
    anyOf(
      "returned error: (404|410)|repository '.*' not found|does not appear to be a git repository",
      'not a git repository|Repository not found|not valid: is this a git repository|does not exist',
      'project you were looking for could not be found',
    ),
    'no_repository',
    (where) => `${where} has no Git repository at this address. Check the address of the repository.`,
  ],
  [
    /transport '.*' not allowed/,
    'forbidden_address',
    () => 'This platform does not allow the protocol of this address. Use an https or ssh address.',
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
  [/dubious ownership/, 'refused', () => 'The directory of the repository belongs to another user of this server.'],
];

/**
 * The SourceError for a failure of git. Other errors pass unchanged.
 * @param isPinned the host key was pinned for this repository
 */
export function toSourceError(error: unknown, endpoint: RemoteEndpoint, isPinned: boolean): unknown {
  if (isFetchDiskFull(error)) return diskFull();
  if (!(error instanceof GitFailed))
    return error instanceof SourceError || error instanceof DriverError
      ? error
      : new SourceError('unreachable', 'The repository could not be read.');
  const where = endpoint.scheme === 'file' ? 'This server' : `The host ${endpoint.host}`;
  if (error.reason === 'too_large') return tooLarge();
  if (error.reason === 'stalled')
    return new SourceError(
      'unreachable',
      `${where} was silent for ${Math.ceil(error.stallMs / 1000)} seconds. Try again later.`,
    );
  if (error.reason === 'time') return new SourceError('unreachable', `${where} did not send the repository in time.`);
  const known = explanations.find(([pattern]) => pattern.test(error.stderr));
  if (known) return new SourceError(known[1], known[2](where, isPinned));
  return new SourceError('unreachable', `${where} did not answer, or closed the connection. Try again later.`);
}

/** Git does not always report why a write failed. */
export function isFetchDiskFull(error: unknown): boolean {
  if (error instanceof GitFailed)
    return saysDiskFull(error.stderr) || /unable to write (new index )?file|write error/.test(error.stderr);
  return isDiskFull(error);
}

/** @param limit in MB; absent where another limit was exceeded */
export function tooLarge(limit?: number): SourceError {
  return new SourceError(
    'too_large',
    `The repository is larger than this platform allows${limit === undefined ? '' : ` (${limit} MB)`}. Keep ` +
      'large files elsewhere, or ask the operator to raise SOURCE_SIZE_MB.',
  );
}

function anyOf(...alternatives: string[]): RegExp {
  return new RegExp(alternatives.join('|'), 'i');
}
