// A command within a running unit, beside its program: with the same namespaces, user, filter and control group. The
// processes around it are those of a unit of its own (launch.ts), with a program that enters in place of the sandbox.
import type { ChildProcess } from 'node:child_process';
import { closeSync, existsSync, openSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import { allProcesses, argumentsOf, type Proc } from '../../../core/process/processes';
import { overrideVariables } from '../../../core/process/variables';
import { LAST_ID, NOBODY, type UserRange } from '../../image/owners';
import type { Handle, UnitSpec } from '../../runtime';
import type { RuntimeHost, User } from '../host_probe';
import { isRunning, OUTPUT_READER, readHandle, readUnit, runDirectoryOf, type Unit } from '../run_directory';
import { enterScript } from './enter_script';
import { CAPABILITIES, requireVariables } from './image_sandbox';
import { baseEnvironment, FILTER_FILE, processLimit, programScript } from './launch';
import { spawnShim, unlinkedFile } from './shim';
import { inForeground, inTerminal } from './terminal';
import { userOfImage } from './user_ranges';

/** The running unit that a spec enters. */
export interface Entered {
  unit: Unit;
  handle: Handle;
  runDirectory: string;
}

const NOT_RUNNING = 'The instance is not running.';

/** @throws DriverError invalid, unsupported */
export async function requireEntered(host: RuntimeHost, directory: string, id: string): Promise<Entered> {
  if (host.perl === null || enterScript() === null)
    throw new DriverError('unsupported', 'This host runs no commands in instances: it lacks the program perl.');
  const runDirectory = runDirectoryOf(directory, id);
  const [unit, handle] = [await readUnit(runDirectory), readHandle(runDirectory, id)];
  if (unit === null || handle === null || !isRunning(handle)) throw new DriverError('invalid', NOT_RUNNING);
  return { unit, handle, runDirectory };
}

/** Starts the shim, as `launch` does. @throws DriverError */
export function launchWithin(
  host: RuntimeHost,
  runDirectory: string,
  spec: UnitSpec,
  { entered, range }: { entered: Entered; range: UserRange | null },
): ChildProcess {
  const program = findProgram(host, entered.handle, spec.image !== undefined);
  if (program === null) throw new DriverError('invalid', 'The instance has not started its program yet. Try again.');
  const command = commandOf(host, runDirectory, program, spec, { entered, range });
  const script = unlinkedFile(runDirectory, contentOf(host, entered, spec).join('\0'));
  const out = openSync(path.join(runDirectory, 'out'), 'a');
  const err = openSync(path.join(runDirectory, 'err'), 'a');
  try {
    return spawnShim({ runDirectory, group: entered.unit.group, counted: null, command, fds: [script, out, err] });
  } finally {
    for (const fd of [script, out, err]) closeSync(fd);
  }
}

function commandOf(
  host: RuntimeHost,
  runDirectory: string,
  program: Proc,
  spec: UnitSpec,
  { entered, range }: { entered: Entered; range: UserRange | null },
): string[] {
  const filter = path.join(entered.runDirectory, FILTER_FILE);
  const user = host.isRoot ? insideUser(host, spec, range) : null;
  const words = [
    ...[host.perl as string, '-e', enterScript() as string, 'platform-unit', String(program.pid), program.start],
    ...(user === null ? ['', '', ''] : [String(user.uid), String(user.gid), (user.groups ?? []).join(',')]),
    host.isRoot || host.bubblewrap ? capabilityMask(spec, range) : '',
    existsSync(filter) ? filter : '',
    host.bubblewrap === null ? '' : 'isolated',
  ];
  const limited =
    entered.unit.group === null
      ? ['/bin/sh', '-c', `${processLimit(host, spec)}; exec "$@"`, 'platform-unit', ...words]
      : words;
  if (spec.input !== 'terminal') return limited;
  const owner = range !== null && spec.image ? userOfImage(range, spec.image) : host.userOf(spec.tenant);
  return inTerminal(runDirectory, owner, limited);
}

/** As the unit sees it: an image has a user namespace. */
function insideUser(host: RuntimeHost, { image, tenant }: UnitSpec, range: UserRange | null): User | null {
  if (!image) return host.userOf(tenant);
  const idOf = (id: number): number => (id <= LAST_ID ? id : NOBODY);
  const { uid, gid, groups = [] } = image.user;
  return range === null ? { uid, gid } : { uid: idOf(uid), gid: idOf(gid), groups: groups.map(idOf) };
}

/** Numbers of capabilities(7). */
const NUMBERS: Record<(typeof CAPABILITIES)[number], number> = {
  ...{ CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, FSETID: 4, KILL: 5, SETGID: 6, SETUID: 7, SETPCAP: 8 },
  ...{ NET_BIND_SERVICE: 10, SYS_CHROOT: 18, SETFCAP: 31 },
};

function capabilityMask({ image }: UnitSpec, range: UserRange | null): string {
  if (!image || range === null || image.user.uid !== 0) return '0';
  return CAPABILITIES.reduce((mask, name) => mask | (1n << BigInt(NUMBERS[name])), 0n).toString(16);
}

/** Directory, number of words, words, variables. @throws DriverError invalid */
function contentOf(host: RuntimeHost, { unit, runDirectory }: Entered, spec: UnitSpec): string[] {
  const { image, command } = spec;
  const { files, env } = baseEnvironment(host, runDirectory, unit);
  const variables = Object.entries(
    image ? { HOME: image.user.home, ...image.env, ...spec.env } : overrideVariables(env, spec.env),
  );
  requireVariables(variables);
  const directory = image ? image.working_directory : path.posix.join(files, spec.root_directory);
  const line = image
    ? spec.input === 'terminal'
      ? inForeground(command).join('\n')
      : command
    : programScript(spec).join('\n');
  const words = ['/bin/sh', '-c', line];
  return [directory, String(words.length), ...words, ...variables.map(([key, value]) => `${key}=${value}`)];
}

/**
 * The process whose namespaces are those of the program: of an image its first one, else the one that the sandbox has
 * started. null: it is not there yet, or has gone.
 */
function findProgram({ bubblewrap }: RuntimeHost, handle: Handle, isImage: boolean): Proc | null {
  const all = [...allProcesses().values()].sort((a, b) => Number(a.start) - Number(b.start) || a.pid - b.pid);
  const childrenOf = ({ pid }: { pid: number }): Proc[] => all.filter((one) => one.parent === pid && !one.zombie);
  const outer = childrenOf(handle).find(({ pid }) => !argumentsOf(pid).includes(OUTPUT_READER));
  if (!outer || bubblewrap === null) return outer && !argumentsOf(outer.pid).includes('platform-unit') ? outer : null;
  const first = childrenOf(outer).find(({ pid }) => namespaceOf(pid, 'pid') !== namespaceOf('self', 'pid'));
  // The oldest: what loses its parent becomes a child of the first process of the sandbox too.
  const [inner] = first ? childrenOf(first) : [];
  if (!first || !inner || !isImage) return inner ?? null;
  const isOutside = (pid: number): boolean => namespaceOf(pid, 'mnt') === namespaceOf(first.pid, 'mnt');
  const program = childrenOf(inner).find(({ pid }) => !isOutside(pid));
  // Before it has become the program, its namespaces are not complete.
  const isSetUp = program && argumentsOf(program.pid).join('\0') !== argumentsOf(inner.pid).join('\0');
  return isSetUp ? program : null;
}

function namespaceOf(pid: number | 'self', kind: 'pid' | 'mnt'): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch {
    return null;
  }
}
