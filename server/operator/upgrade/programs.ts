// Programs of releases, and of the machine, that an upgrade runs.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CommandError } from '../command';

const execute = promisify(execFile);
const WITHIN_MS = 120_000;

/** @throws CommandError with the first line of what the program says */
export async function runReleaseProgram(program: string, words: string[], what: string): Promise<string> {
  try {
    return (await execute(program, words, { timeout: WITHIN_MS, maxBuffer: 2 ** 24, env: ownEnvironment() })).stdout;
  } catch (error) {
    const { stderr = '', message, code } = error as Error & { stderr?: string; code?: unknown };
    const reason =
      stderr.trim().split('\n')[0] || (code === 'ENOENT' ? 'there is no such program' : message.split('\n')[0]);
    throw new CommandError(`${what}: ${reason}`);
  }
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
      throw new CommandError(`doctor of ${version}: ${reason.replace(/^platform(?:-api)?: /, '')}`);
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
