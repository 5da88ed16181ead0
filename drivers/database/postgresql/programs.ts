// PostgreSQL programs of this host, and how they are executed. They end with the control plane: their unfinished output
// has a temporary name, and is made again.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import {
  access,
  constants,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
} from 'node:fs/promises';
import path from 'node:path';
import { isPassable } from '../../../core/directory';
import type { PostgresqlFound } from '../../../core/catalog/host_facts';
import { CommandFailed, run } from '../../../core/process/command';
import { versionOutput } from '../../../core/process/version_output';
import { failureTextOf } from '../../../core/log/failure_text';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { exists, type Owner } from '../../hosted_server/server_directory';
import type { PostgresqlContext } from './cluster';

export interface Programs {
  series: string;
  /** Directory of the programs. */
  bin: string;
  tools: string[];
  /** Paths that a sandbox must mount to run them. */
  readable: string[];
}

const nobodyUser: Owner = { uid: 65534, gid: 65534 };
const isRoot = process.getuid?.() === 0;
const hasSetpriv = process.platform === 'linux';

/** The programs of a major version. @throws DriverError unsupported */
export async function programsOf(engine: PostgresqlContext, series: string): Promise<Programs> {
  const found = engine.found.find((one) => one.series === series);
  if (found === undefined) throw new DriverError('unsupported', `PostgreSQL ${series} is not installed on this host.`);
  const bin = path.dirname(found.path);
  if (found.source === 'system')
    return { series, bin, tools: found.tools, readable: bin.startsWith('/usr/') ? [] : [path.dirname(bin)] };
  const native = await reachable(engine, path.dirname(bin), found);
  return { series, bin: path.join(native, 'bin'), tools: found.tools, readable: [native] };
}

/** @throws DriverError unsupported, with what to install */
export function requireTools(programs: Programs, tools: string[]): void {
  const missing = tools.filter((tool) => !programs.tools.includes(tool));
  if (missing.length === 0) return;
  throw new DriverError(
    'unsupported',
    `PostgreSQL ${programs.series} of this host lacks ${missing.join(' and ')}. Install the packages ` +
      `postgresql-${programs.series} and postgresql-client-${programs.series}.`,
  );
}

const PACKAGES = '/usr/lib/postgresql';
const VERSION_MS = 10_000;

/**
 * The newest of a tool on this host, also of a package of clients without a server: `pg_dump` has to be as new as what
 * it reads, `pg_restore` as what has written.
 * @throws DriverError unsupported
 */
export async function newestTool(
  { engine, programs }: { engine: PostgresqlContext; programs: Programs },
  tool: string,
): Promise<{ program: string; series: string }> {
  const packaged = (await readdir(PACKAGES).catch(() => [])).map((series) => path.join(PACKAGES, series, 'bin'));
  const servers = engine.found.filter(({ tools }) => tools.includes(tool)).map((one) => path.dirname(one.path));
  const directories = new Set([...servers, ...packaged, ...(process.env.PATH ?? '').split(path.delimiter)]);
  const found = await Promise.all([...directories].map((directory) => toolIn(directory, tool)));
  const newest = found.flatMap((one) => one ?? []).sort((a, b) => Number(b.series) - Number(a.series))[0];
  if (newest === undefined) requireTools({ ...programs, tools: [] }, [tool]);
  return newest!;
}

async function toolIn(directory: string, tool: string): Promise<{ program: string; series: string } | null> {
  if (!path.isAbsolute(directory)) return null;
  const program = await realpath(path.join(directory, tool)).catch(() => null);
  // Debian's /usr/bin has a script, which chooses among the packages.
  if (program === null || path.basename(program) !== tool) return null;
  const series = /\) (\d+)/.exec((await versionOutput(program, ['--version'], VERSION_MS)) ?? '')?.[1];
  return series === undefined ? null : { program, series };
}

/** As that of units that give way. */
export const LOW_PRIORITY = ['nice', '-n', '10'];

interface Tool {
  as?: Owner;
  priority?: 'low';
  env?: Record<string, string>;
  cwd?: string;
}

/** initdb runs as a named user, which it requires, and never as root. */
export const initdbUser: Owner | undefined = isRoot ? nobodyUser : undefined;

/**
 * Runs a program and returns its output. Without `as` it runs as the platform's user, without capabilities.
 * @throws CommandFailed
 */
export function runTool(program: string, args: string[], tool: Tool, ctx: DriverContext): Promise<string> {
  const [file = '', ...all] = toolCommand(program, args, tool.priority, tool.as);
  return new Promise((resolve, reject) => {
    const options = { ...settings(tool), signal: ctx.signal, maxBuffer: 8 << 20, killSignal: 'SIGKILL' as const };
    execFile(file, all, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if (error.name === 'AbortError')
        return reject(new DriverError('transient', `The program ${path.basename(program)} ran out of time.`));
      return reject(
        new CommandFailed(
          path.basename(program),
          typeof error.code === 'number' ? error.code : null,
          stdout,
          stderr.trim(),
          failureTextOf(stderr),
        ),
      );
    });
  });
}

/** The words that run a program as runTool does. */
export function toolCommand(program: string, args: string[], priority?: 'low', as?: Owner): string[] {
  return [...(priority === 'low' ? LOW_PRIORITY : []), ...tethered(as), program, ...args];
}

/** Starts a program whose output is read while it comes. `input`: a file descriptor, its standard input. */
export function spawnTool(
  program: string,
  args: string[],
  tool: Tool & { input?: number },
  ctx: DriverContext,
): ChildProcess {
  const [file = '', ...all] = [...tethered(tool.as), program, ...args];
  const stdio = [tool.input ?? 'ignore', 'pipe', 'pipe'] as const;
  return spawn(file, all, { ...settings(tool), stdio: [...stdio], signal: ctx.signal, killSignal: 'SIGKILL' });
}

function settings({ env, cwd }: Tool) {
  return {
    cwd: cwd ?? '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC', PGCONNECT_TIMEOUT: '10', ...env },
  };
}

// The kernel kills the child when this process ends (prctl(2), PR_SET_PDEATHSIG), so that no orphan remains.
function tethered(as?: Owner): string[] {
  if (!hasSetpriv) return [];
  if (!isRoot) return ['setpriv', '--pdeathsig', 'KILL', '--no-new-privs', '--'];
  const user = as === undefined ? [] : ['--reuid', String(as.uid), '--regid', String(as.gid)];
  return [
    'setpriv',
    ...user,
    '--clear-groups',
    '--no-new-privs',
    '--bounding-set=-all',
    '--inh-caps=-all',
    '--pdeathsig',
    'KILL',
    '--',
  ];
}

// The npm package: links between its libraries may be missing (npm ci --ignore-scripts), and it may be in a home
// directory that other users cannot enter. A copy is used then.
async function reachable(engine: PostgresqlContext, native: string, { version }: PostgresqlFound): Promise<string> {
  const complete = await linkLibraries(native);
  if (complete && (!isRoot || isPassable(native))) return native;
  const copy = path.join(engine.directory, '.programs', `postgresql-${version}`);
  if (await exists(copy)) return copy;
  await mkdir(path.dirname(copy), { recursive: true, mode: 0o755 });
  const temporary = await mkdtemp(`${copy}.`);
  await cp(native, temporary, { recursive: true, verbatimSymlinks: true });
  await linkLibraries(temporary);
  await run('chmod', ['-R', 'a+rX', temporary], { deadline: Infinity, signal: new AbortController().signal });
  // Another process may have been first.
  await rename(temporary, copy).catch(() => rm(temporary, { recursive: true, force: true }));
  return copy;
}

async function linkLibraries(native: string): Promise<boolean> {
  const links = JSON.parse(await readFile(path.join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  const made = await Promise.all(
    links.map(async ({ source, target }) => {
      const at = path.join(native, path.relative('native', target));
      if (
        await access(at, constants.R_OK).then(
          () => true,
          () => false,
        )
      )
        return true;
      return symlink(path.basename(source), at).then(
        () => true,
        () => false,
      );
    }),
  );
  return made.every(Boolean);
}
