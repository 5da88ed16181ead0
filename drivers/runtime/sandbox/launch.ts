// The processes started for a unit, from the outside to the inside:
//   sh (the shim)   our user, outside of the sandbox and of the control group; writes `handle` and `exit`, and stays
//   sh              where the unit uses several user ids: makes the user namespace that has them (user_ranges.ts)
//   nsenter         enters the isolated network, if there is one
//   bwrap           the sandbox, where there is one; dies with the shim and takes all inside along
//   setpriv         as root: switches to the tenant's user, or the image's user within its range, without capabilities
//   sh              reads the variables, which no process above may see: LD_PRELOAD and its like would act on them
//   bwrap           of an image: makes its files the root (image_sandbox.ts)
//   the command
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { overrideVariables } from '../../../core/process/variables';
import type { UserRange } from '../../image/owners';
import type { EnteredNetwork } from '../../network';
import type { UnitSpec } from '../../runtime';
import { ownProcesses } from '../cgroup';
import type { RuntimeHost } from '../host_probe';
import type { Unit } from '../run_directory';
import { HEALTH_FD, HEALTH_FILE, healthScript } from './image_health';
import { FILTER_FD, unitFilter } from './seccomp';
import { imageSandbox, outerMounts, requireVariables } from './image_sandbox';
import { dropTo, sandboxed, type Inside } from './sandbox';
import { spawnShim, unlinkedFile } from './shim';
import { inForeground, inTerminal, quoteWord } from './terminal';
import { openRange, userOfImage } from './user_ranges';

/** The filter of system calls: in the run directory, and where the sandbox around an image shows it. */
export const FILTER_FILE = 'etc/seccomp';
const FILTER_INSIDE = '/run/seccomp';

// Not $(</dev/fd/3): reopening the file would need permissions on it, which the tenant lacks.
const scriptRunner = 'eval "$(cat <&3)"';

/** Resources that are prepared before a unit starts. */
export interface Surroundings {
  network: EnteredNetwork | null;
  range: UserRange | null;
}

/**
 * Starts the shim and answers at once; the shim that wrote `handle` is the unit, any other one ends without a trace.
 * @throws DriverError
 */
export function launch(
  host: RuntimeHost,
  runDirectory: string,
  unit: Unit,
  spec: UnitSpec,
  surroundings: Surroundings,
): ChildProcess {
  const filter = writeFilter(host, runDirectory, spec, surroundings.range);
  const hasGroup = unit.group !== null;
  const given = { hasRange: surroundings.range !== null, filtered: filter !== null, hasGroup, files: unit.directory };
  const inner = spec.image && host.bubblewrap ? imageSandbox(host.bubblewrap, spec, spec.image, given) : null;
  const text = inner
    ? imageScript(host, unit, spec, inner, filter !== null)
    : unitScript(host, runDirectory, unit, spec);
  const script = unlinkedFile(runDirectory, text);
  const options = inner ? unlinkedFile(runDirectory, inner.options.map((option) => `${option}\0`).join('')) : 'ignore';
  const health = spec.image?.health_check ? openSync(path.join(runDirectory, HEALTH_FILE), 'a', 0o600) : null;
  const rules = filter ? openSync(filter, 'r') : null;
  const out = openSync(path.join(runDirectory, 'out'), 'a');
  const err = openSync(path.join(runDirectory, 'err'), 'a');
  try {
    const command = commandOf(host, runDirectory, unit, spec, surroundings, filter);
    return spawnShim({
      runDirectory,
      group: unit.group,
      counted: unit.group,
      command,
      fds: [script, out, err, options, health ?? 'ignore', rules ?? 'ignore'],
    });
  } finally {
    for (const fd of [script, out, err, options, health, rules]) if (typeof fd === 'number') closeSync(fd);
  }
}

/** @returns the file that holds it; null where the host has no filters */
function writeFilter(
  host: RuntimeHost,
  runDirectory: string,
  { nested, image }: UnitSpec,
  range: UserRange | null,
): string | null {
  const filter = host.seccomp ? unitFilter({ nested, oneUser: image !== undefined && range === null }) : null;
  if (filter === null) return null;
  const file = path.join(runDirectory, FILTER_FILE);
  writeFileSync(file, filter, { mode: 0o644 });
  return file;
}

/** The variables that the unit gets unless it has its own, and where its files are for it. */
export function baseEnvironment(
  host: RuntimeHost,
  runDirectory: string,
  unit: Unit,
): { files: string; env: Record<string, string> } {
  const files = host.bubblewrap ? '/app' : unit.directory;
  const tmp = host.bubblewrap ? '/tmp' : path.join(runDirectory, 'tmp');
  return { files, env: { PATH: host.path, HOME: files, LANG: 'C.UTF-8', TMPDIR: tmp } };
}

function commandOf(
  host: RuntimeHost,
  runDirectory: string,
  unit: Unit,
  spec: UnitSpec,
  { network, range }: Surroundings,
  filter: string | null,
): string[] {
  const shell = ['/bin/sh', '-c', scriptRunner, 'platform-unit'];
  const user = range !== null && spec.image ? userOfImage(range, spec.image) : host.userOf(spec.tenant);
  const inner = user === null ? shell : [...dropTo(host, user), ...shell];
  const [program = '', ...words] = sandboxed(host, {
    runDirectory,
    files: unit.directory,
    mounts: spec.image ? outerMounts(spec) : spec.mounts,
    readable: spec.readable,
    ...filterOf(filter, spec),
    group: unit.group,
    command: inner,
  });
  const whole = [
    ...(range !== null && user !== null ? openRange(host, range, user) : []),
    ...(network?.command ?? []),
    ...(spec.low_priority || (spec.kind === 'task' && !spec.own_copy) ? host.lowPriority : []),
    program,
    ...(network?.sandboxOptions ?? []),
    ...words,
  ];
  return spec.input === 'terminal' ? inTerminal(runDirectory, user, whole) : whole;
}

// The sandbox within the sandbox of an image has it; the one around it makes that one.
function filterOf(filter: string | null, { image }: UnitSpec): Pick<Inside, 'filter' | 'shown'> {
  if (filter === null) return {};
  return image ? { shown: [{ source: filter, target: FILTER_INSIDE }] } : { filter: FILTER_FD };
}

function unitScript(host: RuntimeHost, runDirectory: string, unit: Unit, spec: UnitSpec): string {
  const { files, env } = baseEnvironment(host, runDirectory, unit);
  const variables = Object.entries(overrideVariables(env, spec.env));
  requireVariables(variables);
  const directory = path.posix.join(files, spec.root_directory);
  const missing = `The directory ${spec.root_directory} does not exist.`;
  return [
    'exec 3<&-',
    'umask 022',
    ...(unit.group === null ? [processLimit(host, spec)] : []),
    `cd ${quoteWord(directory)} || { echo ${quoteWord(missing)} >&2; exit 126; }`,
    // Variables of the shells around it.
    'unset LC_ALL OLDPWD',
    // `command`: where sh is bash, names like UID are read-only, and the shell would end.
    ...variables.map(([key, value]) => `command export ${key}=${quoteWord(value)} 2>/dev/null || :`),
    ...programScript(spec),
    '',
  ].join('\n');
}

/** Lines of a shell that become the command of the unit. */
export function programScript({ command, input }: UnitSpec): string[] {
  return [
    // The profile that a build leaves for commands of its release: paths of programs (drivers/builder/build_script.ts).
    '[ ! -r .platform/profile ] || . ./.platform/profile',
    ...(input === 'terminal' ? inForeground(command) : [`exec /bin/sh -c ${quoteWord(command)}`]),
  ];
}

type Inner = ReturnType<typeof imageSandbox>;

/** Run in the sandbox, but outside of the root of the image, which may have no shell. */
function imageScript(
  host: RuntimeHost,
  unit: Unit,
  spec: UnitSpec,
  { command, options }: Inner,
  hasFilter: boolean,
): string {
  const check = spec.image?.health_check;
  const enter = [...command.slice(0, command.indexOf('--') + 1), ...(check?.command ?? [])];
  const filter = hasFilter ? ` ${FILTER_FD}< ${FILTER_INSIDE}` : '';
  return [
    'exec 3<&-',
    'umask 022',
    ...(unit.group === null ? [processLimit(host, spec)] : []),
    'unset LC_ALL OLDPWD',
    ...(check ? healthScript(check, { command: enter, options, filter }, quoteWord) : []),
    `exec ${command.map(quoteWord).join(' ')}${filter}${check ? ` ${HEALTH_FD}>&-` : ''}`,
    '',
  ].join('\n');
}

// Without a control group. RLIMIT_NPROC counts the processes of a unit alone where it has a user namespace, else all of
// its user: of all units of a tenant, or, without users to give, everything of ours. dash calls it -p, others -u.
export function processLimit(host: RuntimeHost, spec: UnitSpec): string {
  const limits = {
    unit: spec.limits.processes + ownProcesses,
    user: spec.limits.processes * unitsOfUser,
    monitor: ownProcessesMax,
  };
  const limit = limits[host.processLimit];
  return `ulimit -u ${limit} 2>/dev/null || ulimit -p ${limit} 2>/dev/null || :`;
}

const unitsOfUser = 8;
const ownProcessesMax = 4096;
