// Isolation features of this host. All are determined by trial: the claims of containers are often wrong.
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isPassable } from '../../core/directory';
import { driverContext } from '../../core/driver';
import { abandonedTrials, makeTrial } from '../trial';
import { tryMount } from '../volume/trial';
import { findGroups, type Group } from './cgroup';
import { FILTER_FD, unitFilter } from './sandbox/seccomp';
import { accountFiles, cleanEnvironment, dropTo, sandboxed, systemPath } from './sandbox/sandbox';
import { copyNode } from './reachable_node';
import { languagePaths, toolchains } from './toolchains';
import { rangeTrial } from './sandbox/user_ranges';

export interface User {
  uid: number;
  gid: number;
  /** Further ones. */
  groups?: number[];
}

export interface RuntimeHost {
  isRoot: boolean;
  /** Paths of the programs, null where they are not there or do not work here. */
  bubblewrap: string | null;
  setpriv: string | null;
  unshare: string | null;
  perl: string | null;
  /** Whether bubblewrap takes a filter of seccomp(2), and the kernel heeds it. */
  seccomp: boolean;
  /** Whether a unit can have the root of an image: a second bubblewrap within the sandbox, as its user. */
  runsImages: boolean;
  /** Whether a unit can use a range of user ids (user_ranges.ts). */
  mapsRanges: boolean;
  /** Whether a unit can have a separate disk with a hard size limit. */
  hardDisks: boolean;
  fallocate: string | null;
  /** nice and ionice with their arguments. */
  lowPriority: string[];
  groups: Group | null;
  users: 'one_each' | 'shared' | 'own';
  /**
   * What limits the processes of a unit without control groups: a limit per unit (`unit`), a several times higher limit
   * per user (`user`), or only the monitor, which kills the unit when it notices an excess (`monitor`).
   */
  processLimit: 'unit' | 'user' | 'monitor';
  /** Command prefix that gives each unit a separate process count; null: bubblewrap does, or the host can't. */
  userNamespace: string[] | null;
  /** The user for a tenant; null: the platform's user. */
  userOf: (tenant: number) => User | null;
  /** Directories outside of /usr with languages in them, e.g. of a version manager. */
  toolchains: string[];
  /** PATH of units. */
  path: string;
  /** Why nothing can run here: tenants never run as root. */
  unsupportedReason: string | null;
}

export interface ProbeOptions {
  directory: string;
  sandbox: 'auto' | 'bubblewrap' | 'none';
  tenantUidBase: number;
  readable?: readonly string[];
  limits?: 'auto' | 'poll';
  disks?: 'auto' | 'soft';
  /** Directory for copies of programs that users of tenants cannot reach where they are; absent: none are made. */
  programs?: string;
}

// Not the user `nobody`, which the embedded database and others use, unless there is no alternative.
const fallbackUser: User = { uid: 65533, gid: 65533 };
const nobody: User = { uid: 65534, gid: 65534 };
const NO_BUBBLEWRAP =
  'SANDBOX is bubblewrap, but bubblewrap does not work on this host. Install it, or allow it to create namespaces.';
const trialWithinMs = 5_000;

export async function probeHost(options: ProbeOptions): Promise<RuntimeHost> {
  const { directory, sandbox, tenantUidBase, readable = [], limits, disks, programs } = options;
  const isRoot = process.getuid?.() === 0;
  const linux = process.platform === 'linux';
  const host: RuntimeHost = {
    isRoot,
    ...{ bubblewrap: null, unshare: null, seccomp: false, runsImages: false, mapsRanges: false },
    setpriv: linux ? findProgram('setpriv') : null,
    perl: linux ? findProgram('perl') : null,
    // First, since the trials below expect that no earlier trial left a mount behind.
    hardDisks: isRoot && linux && disks !== 'soft' && (await canLimitDisks(directory)),
    fallocate: linux ? findProgram('fallocate') : null,
    lowPriority: await lowPriority(),
    groups: linux && limits !== 'poll' ? await findGroups() : null,
    users: 'own',
    processLimit: isRoot ? 'user' : 'monitor',
    userNamespace: null,
    userOf: () => null,
    toolchains: [...toolchains(directory), ...readable],
    path: systemPath,
    unsupportedReason: null,
  };
  if (isRoot) await findUsers(host, tenantUidBase);
  if (linux && sandbox !== 'none') host.bubblewrap = await workingBubblewrap(host, directory);
  if (host.bubblewrap !== null) {
    [host.runsImages, host.seccomp, host.mapsRanges] = await Promise.all([
      canNest(host, host.bubblewrap, directory),
      canFilter(host, directory),
      canMapRanges(host, host.bubblewrap, directory),
    ]);
  } else if (isRoot && linux) {
    host.unshare = await workingUnshare();
    // Units with volumes have copies of all mounts then, which keep the disks of others in use.
    host.hardDisks = false;
  }
  if (!isRoot && linux) await findProcessLimit(host, directory);
  const seesHost = host.bubblewrap === null && isRoot;
  host.path = languagePaths(host.toolchains, seesHost ? isPassable : () => true);
  if (seesHost && programs !== undefined && !isPassable(path.dirname(process.execPath)))
    host.path = `${await copyNode(programs)}:${host.path}`;
  host.unsupportedReason ??= sandboxUnsupportedReason(host, sandbox);
  return host;
}

function sandboxUnsupportedReason(host: RuntimeHost, sandbox: ProbeOptions['sandbox']): string | null {
  if (sandbox === 'bubblewrap' && host.bubblewrap === null) return NO_BUBBLEWRAP;
  return null;
}

async function canLimitDisks(directory: string): Promise<boolean> {
  return tryMount(directory, driverContext(trialWithinMs)).then(
    () => true,
    () => false,
  );
}

// In a container whose users are mapped, high numbers may not exist.
async function findUsers(host: RuntimeHost, base: number): Promise<void> {
  if (await canSwitchTo(host, { uid: base, gid: base })) {
    host.users = 'one_each';
    host.userOf = (tenant) => ({ uid: base + tenant, gid: base + tenant });
    return;
  }
  host.users = 'shared';
  const user = (await canSwitchTo(host, fallbackUser)) ? fallbackUser : nobody;
  host.userOf = () => user;
  if (user === nobody && !(await canSwitchTo(host, nobody)))
    host.unsupportedReason =
      'The platform runs as root and cannot switch to another user. Install util-linux, or run it as an ordinary user.';
}

async function canSwitchTo(host: RuntimeHost, user: User): Promise<boolean> {
  if (host.setpriv === null) return false;
  return (await outputOf([...dropTo(host, user), '/bin/sh', '-c', 'id -u'])) === String(user.uid);
}

async function workingBubblewrap(host: RuntimeHost, directory: string): Promise<string | null> {
  const bubblewrap = findProgram('bwrap');
  if (bubblewrap === null || host.unsupportedReason !== null) return null;
  const works = 'test -d /app && echo x > /tmp/trial && echo x > /dev/shm/trial && test $$ -lt 10 && echo works';
  return (await tryInSandbox({ ...host, bubblewrap }, directory, works)) === 'works' ? bubblewrap : null;
}

async function canNest(host: RuntimeHost, bubblewrap: string, directory: string): Promise<boolean> {
  const inner = '--unshare-user --uid 1234 --gid 1234 --bind / / --bind /proc /proc --dev /dev';
  return (await tryInSandbox(host, directory, `${bubblewrap} ${inner} -- /bin/sh -c 'id -u'`)) === '1234';
}

// In a container whose users are mapped, high numbers may not exist.
async function canMapRanges(host: RuntimeHost, bubblewrap: string, directory: string): Promise<boolean> {
  const user = host.users === 'one_each' ? host.userOf(0) : null;
  if (user === null) return false;
  const { before, script } = rangeTrial(host, bubblewrap, user);
  return (await tryInSandbox(host, directory, script, { before })) === '7';
}

async function canFilter(host: RuntimeHost, directory: string): Promise<boolean> {
  const filter = unitFilter();
  const script = 'unshare --user true 2>/dev/null && echo unfiltered || echo filtered';
  return filter !== null && (await tryInSandbox(host, directory, script, { filter })) === 'filtered';
}

/** Runs a script like a unit. @returns its output */
async function tryInSandbox(
  host: RuntimeHost,
  directory: string,
  script: string,
  { filter = null, before = [] }: { filter?: Buffer | null; before?: string[] } = {},
): Promise<string | null> {
  const removeTrial = (trial: string): void => rmSync(trial, { recursive: true, force: true });
  abandonedTrials(directory).forEach(removeTrial);
  const runDirectory = makeTrial(directory);
  try {
    const user = host.userOf(0);
    for (const name of ['tmp', 'etc', 'files']) mkdirSync(path.join(runDirectory, name));
    chmodSync(path.join(runDirectory, 'tmp'), 0o1777);
    const { passwd, group } = accountFiles(user);
    writeFileSync(path.join(runDirectory, 'etc/passwd'), passwd);
    writeFileSync(path.join(runDirectory, 'etc/group'), group);
    const shell = ['/bin/sh', '-c', script];
    const command = user === null ? shell : [...dropTo(host, user), ...shell];
    const inside = { runDirectory, files: path.join(runDirectory, 'files'), mounts: [], command };
    if (filter === null) return await outputOf([...before, ...sandboxed(host, inside)]);
    const file = path.join(runDirectory, 'filter');
    writeFileSync(file, filter);
    const filtered = sandboxed(host, { ...inside, filter: FILTER_FD });
    return await outputOf(['/bin/sh', '-c', `exec "$@" ${FILTER_FD}< "$0"`, file, ...filtered]);
  } finally {
    removeTrial(runDirectory);
  }
}

// RLIMIT_NPROC counts per user and user namespace since Linux 5.14: in a separate namespace a unit has a separate
// count, which nested namespaces cannot escape. The platform alone has more than 6 tasks: if the limit counts them, the
// first fork fails; if it counts nothing, all forks succeed.
const COUNTS_ALONE = `ulimit -u 6 2>/dev/null || ulimit -p 6 || exit 1
(echo one; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2 >/dev/null & done; echo all) 2>/dev/null || :`;

async function findProcessLimit(host: RuntimeHost, directory: string): Promise<void> {
  const unshare = findProgram('unshare');
  const candidates = host.bubblewrap ? [null] : unshare === null ? [] : [[unshare, '--user', '--map-current-user']];
  for (const userNamespace of candidates) {
    if ((await tryInSandbox({ ...host, userNamespace }, directory, COUNTS_ALONE)) !== 'one') continue;
    host.processLimit = 'unit';
    host.userNamespace = userNamespace;
  }
}

async function workingUnshare(): Promise<string | null> {
  const unshare = findProgram('unshare');
  if (unshare === null) return null;
  const answer = await outputOf([
    unshare,
    '--mount',
    '--propagation',
    'private',
    '/bin/sh',
    '-c',
    'mount --bind /tmp /tmp && echo works',
  ]);
  return answer === 'works' ? unshare : null;
}

async function lowPriority(): Promise<string[]> {
  const nice = findProgram('nice');
  const ionice = findProgram('ionice');
  const words = [
    ...(nice === null ? [] : [nice, '-n', '10']),
    ...(ionice === null ? [] : [ionice, '-c', '2', '-n', '7', '-t']),
  ];
  return (await outputOf([...words, '/bin/sh', '-c', 'echo works'])) === 'works' ? words : [];
}

// Absolute, and only from the system: what these run as root no user of the host may have put there.
function findProgram(name: string): string | null {
  return (
    systemPath
      .split(':')
      .map((place) => path.join(place, name))
      .find((file) => ((statSync(file, { throwIfNoEntry: false })?.mode ?? 0) & 0o111) !== 0) ?? null
  );
}

function outputOf([file = '', ...args]: string[]): Promise<string | null> {
  return new Promise((resolve) => {
    execFile(
      file,
      args,
      { cwd: '/', env: cleanEnvironment, timeout: trialWithinMs, killSignal: 'SIGKILL' },
      (error, stdout) => resolve(error === null ? stdout.trim() : null),
    );
  });
}
