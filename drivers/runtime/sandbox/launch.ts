// The processes started for a unit, from the outside to the inside:
//   sh (the shim)   our user, outside of the sandbox and of the control group; writes `handle` and `exit`, and stays
//   sh              where the unit uses several user ids: makes the user namespace that has them (user_ranges.ts)
//   nsenter         enters the isolated network, if there is one
//   bwrap           the sandbox, where there is one; dies with the shim and takes all inside along
//   setpriv         as root: switches to the tenant's user, or the image's user within its range, without capabilities
//   sh              reads the variables, which no process above may see: LD_PRELOAD and its like would act on them
//   bwrap           of an image: makes its files the root (image_sandbox.ts)
//   the command
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { overrideVariables } from '../../../core/process/variables';
import type { UserRange } from '../../image/owners';
import type { EnteredNetwork } from '../../network';
import type { UnitSpec } from '../../runtime';
import { memoryEventsFile, ownProcesses, procsFiles } from '../cgroup';
import type { RuntimeHost } from '../host_probe';
import { OUTPUT_READER, type Unit } from '../run_directory';
import { HEALTH_FD, HEALTH_FILE, healthScript } from './image_health';
import { FILTER_FD, unitFilter } from './seccomp';
import { imageSandbox, outerMounts, requireVariables } from './image_sandbox';
import { cleanEnvironment, dropTo, sandboxed, type Inside } from './sandbox';
import { inForeground, inTerminal, quoteWord } from './terminal';
import { openRange, userOfImage } from './user_ranges';

// $1 run directory, $2 file with oom_kill or '', $3 number of cgroup.procs files, these files, command. It may run as
// root: only builtins and programs of the system, and no variable of a tenant. Foreground, because shells let
// background commands ignore SIGINT; signals to the shim itself wait until the command has ended, its traps are not
// inherited. `handle` gets its name when it is whole: on a full disk an empty one would stay, and no later shim could
// become the unit. A unit with input reads from a FIFO. A process beside it holds the FIFO open for writing, so that
// the end of a writer is not the end of the input; it inherits 9, since a client may write and leave before it runs. It
// ends with a line in `stdin_end`, which is open before a client can open the FIFO: what ends the input before that
// process runs waits there. It is in the group of the unit and names its TMPDIR, so it goes with the unit.
//
// The program writes to FIFOs, which processes beside it copy into the files: of a file, a program that opens
// /dev/stdout anew would truncate what was there. They are outside of its group, are not meant by signals, and end with
// its last process; where the disk is full, they drop what comes, so that the program goes on. The shim keeps the FIFOs
// open meanwhile, so that a program is not ended because its reader was. What holds them open behind the end of the
// program, without a sandbox, delays the record of it by two seconds.
const copyOutput = `trap '' TERM INT HUP QUIT; until cat; do timeout 1 cat >/dev/null; done`;
const shim = `
trap : TERM INT HUP QUIT
dir=$1 oom=$2 count=$3; shift 3
hold='exec 3<&- 6<&- 7<&- 8>"$1/stdin" 9<&-; read -r _ <&1'
start= boot= first=
if [ -r /proc/$$/stat ]; then
  read -r stat < /proc/$$/stat
  read -r boot < /proc/sys/kernel/random/boot_id
  start=$(set -- \${stat##*) }; echo "\${20}")
else
  start=$(LC_ALL=C ps -o lstart= -p $$ | tr -s ' ' _ | sed 's/^_//; s/_$//')
fi
draft=$dir/handle.$$
echo "$$ $start $boot" > "$draft" && ln "$draft" "$dir/handle" || first=no
rm -f "$draft"
[ "$first" != no ] || exit 0
copy() { exec /bin/sh -c "${copyOutput}" ${OUTPUT_READER} 2>/dev/null 3<&- 4>&- 5>&- 6<&- 7>&- 8<&- 9<&-; }
readers=
if [ -p "$dir/stdout" ]; then
  exec 1<>"$dir/stdout" 9<"$dir/stdout"
  copy <&9 >&4 & readers=$!
  exec 0<>"$dir/stderr" 9<"$dir/stderr"
  copy <&9 >&5 & readers="$readers $!"
  exec 9<&-
fi
(
  trap - TERM INT HUP QUIT
  exec </dev/null >/dev/null
  while [ "$count" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; count=$((count - 1)); done
  echo 500 > /proc/self/oom_score_adj
  ulimit -c 0
  if [ -p "$dir/stdin" ]; then
    exec 1<>"$dir/stdin_end" 9<>"$dir/stdin"
    (exec env TMPDIR="$dir/tmp" /bin/sh -c "$hold" platform-unit "$dir" </dev/null 4>&- 5>&- &)
    exec <"$dir/stdin" 9<&-
  fi
  if [ -n "$readers" ]; then exec >"$dir/stdout" 2>"$dir/stderr"; else exec >&4 2>&5; fi
  exec "$@" 4>&- 5>&-
)
code=$? kills=0
[ -p "$dir/stdin_end" ] && echo 1<>"$dir/stdin_end"
if [ -n "$readers" ]; then
  exec </dev/null >/dev/null
  (i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i + 1)); done; kill -9 $readers) & watch=$!
  wait $readers
  kill -9 $watch
  wait $watch
fi
if [ -n "$oom" ]; then while read -r key value; do [ "$key" = oom_kill ] && kills=$value; done < "$oom"; fi
echo "$code $kills" > "$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"
`;

/** The filter of system calls: in the run directory, and where the sandbox around an image shows it. */
const FILTER_FILE = 'etc/seccomp';
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
    const groupFiles = unit.group === null ? [] : procsFiles(unit.group);
    const events = unit.group === null ? '' : memoryEventsFile(unit.group);
    const command = commandOf(host, runDirectory, unit, spec, surroundings, filter);
    const child = spawn(
      '/bin/sh',
      ['-c', shim, 'platform-unit', runDirectory, events, String(groupFiles.length), ...groupFiles, ...command],
      {
        cwd: '/',
        env: cleanEnvironment,
        detached: true,
        stdio: ['ignore', 'ignore', 'ignore', script, out, err, options, health ?? 'ignore', rules ?? 'ignore'],
      },
    );
    child.on('error', () => undefined); // the caller sees that no handle appears
    child.unref();
    return child;
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
function baseEnvironment(
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
    ...(spec.kind === 'task' && !spec.own_copy ? host.lowPriority : []),
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
    // The profile that a build leaves for commands of its release: paths of programs (drivers/builder/build_script.ts).
    '[ ! -r .platform/profile ] || . ./.platform/profile',
    ...(spec.input === 'terminal' ? inForeground(spec.command) : [`exec /bin/sh -c ${quoteWord(spec.command)}`]),
    '',
  ].join('\n');
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
function processLimit(host: RuntimeHost, spec: UnitSpec): string {
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

// An unlinked file, in memory if the host has such a directory: no other process can open it, and if this process is
// killed at any moment, no partial file is left behind.
function unlinkedFile(runDirectory: string, text: string): number {
  const directory = temporaryDirectory() ?? mkdtempSync(path.join(runDirectory, '.variables-'));
  try {
    const fd = openSync(path.join(directory, 'script'), 'wx+', 0o600);
    rmSync(directory, { recursive: true });
    const bytes = Buffer.from(text);
    // Written at an explicit position, so that the shared file offset stays at the beginning for the reader.
    for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at, bytes.length - at, at);
    return fd;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function temporaryDirectory(): string | null {
  try {
    return os.platform() === 'linux' ? mkdtempSync('/dev/shm/platform-') : null;
  } catch {
    return null;
  }
}
