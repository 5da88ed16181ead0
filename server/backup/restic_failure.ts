// What restic says where it fails, for the operator.
import { CommandError } from '../command_error';

const MISSING = /unable to open config file|Is there a repository/;
/** Bytes of the repository are not what restic wrote: their checksums or their structure do not agree. */
const SPOILED = new RegExp(
  [
    ...['ciphertext verification failed', 'invalid data returned', 'hash mismatch', 'does not match (?:id|hash)'],
    ...['Unmarshal', 'is damaged', 'wrong hash', 'LoadIndex returned errors', 'repository contains errors'],
    ...['blob not found', 'invalid header length'],
    // Version 0.14, of a key that is not what it was.
    'panic: runtime error',
    // A file of the repository that is there no more.
    ...['StreamPack: .*(?:no such file|does not exist|not found)', 'pack \\w+: does not exist'],
    ...['Load\\(<data/.*(?:no such file|does not exist)', 'UtimesNano: no such file'],
  ].join('|'),
);
/** Says how many errors there were, and not which. */
const COUNTED = /There were \d+ errors|returned errors|contains errors/;
const FAULT = /error|fail|invalid|mismatch|does not match|damaged/i;

interface Failed {
  repository: string;
  passwordFile: string;
}

/** Whether restic has found no repository there. */
export function isMissing(err: string): boolean {
  return MISSING.test(err);
}

export function isSpoiled(err: string): boolean {
  return SPOILED.test(err);
}

/** What restic says, as one sentence for the operator. */
export function failure({ repository, passwordFile }: Failed, err: string): CommandError {
  const address = hidePassword(repository);
  if (/wrong password|no key found/.test(err))
    return new CommandError(`the passphrase in ${passwordFile} does not open the repository ${address}`);
  if (/no space left|disk quota/i.test(err))
    return new CommandError(`the disk of the repository ${address} is full: make room there`);
  if (MISSING.test(err))
    return new CommandError(
      `there is no repository of restic in ${address}: mount its disk, or begin anew with \`restic init\``,
    );
  const lines = err.split('\n').filter((line) => line.trim() !== '' && !line.startsWith('{'));
  const fatal = lines.find((line) => line.startsWith('Fatal:') && !COUNTED.test(line));
  const spoiled = lines.find((line) => SPOILED.test(line) && !COUNTED.test(line));
  const reason = fatal ?? spoiled ?? lines.find((line) => FAULT.test(line)) ?? lines.at(-1) ?? 'it has said nothing';
  const said = reason.trim().replace(/^(?:Fatal|error|ignoring error for \S+): /, '');
  if (!SPOILED.test(err)) return new CommandError(`restic with ${address}: ${said}`);
  return new CommandError(
    `the repository ${address} is spoiled (${said}): keep it, name another RESTIC_REPOSITORY for new backups, and ` +
      'see what is lost with `restic check --read-data`',
  );
}

/** `rest:https://user:password@host/` may have one. */
export function hidePassword(repository: string): string {
  return repository.replace(/(\/\/[^/:@]+):[^/@]+@/, '$1:…@');
}
