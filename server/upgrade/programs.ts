// Programs of releases, and of the machine, that an upgrade runs.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CommandError } from '../command_error';

const execute = promisify(execFile);
const WITHIN_MS = 120_000;
/** A slow disk, or one that others keep busy, takes minutes for what is hundreds of megabytes. */
const DISK_WITHIN_MS = 60 * 60_000;

/** @param words arguments @param what has failed then @throws CommandError with the first line of what it prints */
export function runReleaseProgram(program: string, words: string[], what: string): Promise<string> {
  return runWithin(WITHIN_MS, program, words, what);
}

/** One whose time depends on the disk alone. @throws CommandError */
export function runDiskProgram(program: string, words: string[], what: string): Promise<string> {
  return runWithin(DISK_WITHIN_MS, program, words, what);
}

/** Until a power cut takes nothing away of what was written there. @throws CommandError */
export async function syncFileSystem(place: string, what: string): Promise<void> {
  await runDiskProgram('sync', ['--file-system', place], `${what} could not be written to the disk`);
}

async function runWithin(withinMs: number, program: string, words: string[], what: string): Promise<string> {
  try {
    return (await execute(program, words, { timeout: withinMs, maxBuffer: 2 ** 24, env: ownEnvironment() })).stdout;
  } catch (error) {
    throw new CommandError(`${what}: ${reasonOf(error as Failure, withinMs)}`);
  }
}

type Failure = Error & { stderr?: string; code?: unknown; killed?: boolean };

function reasonOf({ stderr = '', message, code, killed }: Failure, withinMs: number): string {
  if (killed) return `it did not end within ${withinMs / 60_000} minutes`;
  const first = withoutName(stderr.trim().split('\n')[0] ?? '');
  return first || (code === 'ENOENT' ? 'there is no such program' : message.split('\n')[0]) || '';
}

function withoutName(line: string): string {
  return line.replace(/^platform(?:-api)?: (?:Error: )?/, '');
}

export interface DoctorFinding {
  check: string;
  status: string;
  detail: string;
}

/** What `doctor` of a release finds here. @throws CommandError where it does not run */
export async function doctorOf(directory: string, version: string): Promise<DoctorFinding[]> {
  const words = ['doctor', '--json'];
  const program = `${directory}/bin/platform`;
  const text = await execute(program, words, { timeout: WITHIN_MS, maxBuffer: 2 ** 24, env: ownEnvironment() }).then(
    ({ stdout }) => stdout,
    (error: Error & { stdout?: string; stderr?: string }) => {
      if (error.stdout?.trimStart().startsWith('{')) return error.stdout;
      const reason = (error.stderr?.trim() || error.message).split('\n')[0] ?? '';
      throw new CommandError(`doctor of ${version}: ${withoutName(reason)}`);
    },
  );
  return (JSON.parse(text) as { data: DoctorFinding[] }).data;
}

/** Names of the settings that a release knows. */
export async function settingNamesOf(directory: string, version: string): Promise<Set<string>> {
  const text = await runReleaseProgram(
    `${directory}/bin/platform`,
    ['start', '--help'],
    `${version} does not run here`,
  );
  return new Set([...text.matchAll(/^ {2}([A-Z][A-Z0-9_]+) {2}\(/gm)].map(([, name]) => name as string));
}

/** Of this release: a program of another one brings its own. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, NODE_ENV: __, ...env } = process.env;
  return env;
}
