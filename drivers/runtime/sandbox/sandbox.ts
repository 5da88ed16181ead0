// The view of a unit on the host. With bubblewrap: the system and the languages read-only, the unit's files at /app, a
// private /tmp, its mounts; no other unit, no data of the platform, no home directories; the network of the host.
// Without bubblewrap it sees all that its user may read.
import { lstatSync, readFileSync, readlinkSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import { controllers, type Group } from '../cgroup';
import type { RuntimeHost, User } from '../host_probe';

export interface Inside {
  /** Run directory. */
  runDirectory: string;
  /** Host path that is mounted at /app. */
  files: string;
  mounts: { source: string; target: string }[];
  readable?: string[];
  /** Files that it may read, at another path. */
  shown?: { source: string; target: string }[];
  /** File descriptor of a filter of seccomp(2). */
  filter?: number;
  /** The group that it is in by then, which it sees as the only one of the host. */
  group?: Group | null;
  command: string[];
}

export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Where a unit sees its control group. */
export const CGROUPS = '/sys/fs/cgroup';
const CPUS = `${CGROUPS}/cpuset/cpuset.cpus`;

/** Environment of the platform's programs around the unit. */
export const cleanEnvironment = { PATH: systemPath, LC_ALL: 'C' };

const HOST_NAME = 'app';

const etc = [
  'resolv.conf',
  'hosts',
  'host.conf',
  'nsswitch.conf',
  'gai.conf',
  'services',
  'protocols',
  'localtime',
  'timezone',
  'mime.types',
  'ld.so.cache',
  'ld.so.conf',
  'ld.so.conf.d',
  'ssl',
  'ca-certificates',
  'ca-certificates.conf',
  'pki',
  'crypto-policies',
  'alternatives',
  'fonts',
  'java-11-openjdk',
  'java-17-openjdk',
  'java-21-openjdk',
  'java-25-openjdk',
  // Not all of it: its settings.xml may hold credentials of the owner.
  'maven/m2.conf',
  'maven/logging',
  'php',
];

/** The command line that runs `command` in the sandbox of this host. @throws DriverError invalid, unsupported */
export function sandboxed(host: RuntimeHost, inside: Inside): string[] {
  requireTargets(inside);
  if (host.bubblewrap) return [host.bubblewrap, ...bubblewrapArguments(host, inside), '--', ...inside.command];
  const elsewhere = inside.mounts.filter(({ source, target }) => source !== target);
  if (elsewhere.length === 0) return [...(host.userNamespace ?? []), ...inside.command];
  return [...inOwnMounts(host, elsewhere), ...inside.command];
}

/** Puts setpriv before a command: from root to the user, without capabilities, without a way back. */
export function dropTo(host: RuntimeHost, { uid, gid, groups = [] }: User): string[] {
  if (host.setpriv === null)
    throw new DriverError('unsupported', 'This host lacks the program setpriv. Install util-linux.');
  return [
    host.setpriv,
    '--reuid',
    String(uid),
    '--regid',
    String(gid),
    ...(groups.length === 0 ? ['--clear-groups'] : ['--groups', groups.join(',')]),
    '--no-new-privs',
    '--bounding-set=-all',
    '--inh-caps=-all',
  ];
}

/** /etc/passwd and /etc/group of a sandbox. */
export function accountFiles(user: User | null): { passwd: string; group: string } {
  // The platform's user need not have a name: in a container it often has none.
  const { uid, gid } = user ?? { uid: process.getuid!(), gid: process.getgid!() };
  return {
    passwd: [
      'root:x:0:0:root:/root:/usr/sbin/nologin\n',
      uid === 0 ? '' : `app:x:${uid}:${gid}:app:/app:/bin/sh\n`,
      'nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
    ].join(''),
    group: `root:x:0:\n${gid === 0 ? '' : `app:x:${gid}:\n`}nogroup:x:65534:\n`,
  };
}

/** /etc/hosts of a sandbox: that of the host, and its own name. Ports of units are on the loopback interface. */
export function hostsFile(): string {
  const given = lstatSync('/etc/hosts', { throwIfNoEntry: false }) ? readFileSync('/etc/hosts', 'utf8') : '';
  return `${given}${given === '' || given.endsWith('\n') ? '' : '\n'}127.0.0.1 ${HOST_NAME}\n`;
}

function bubblewrapArguments(host: RuntimeHost, inside: Inside): string[] {
  const { files, mounts, readable = [] } = inside;
  return [
    ...namespaceArguments(host),
    ...systemArguments(inside),
    ...scratchArguments(inside),
    ...(inside.group ? groupArguments(inside.group) : []),
    ...['--bind', files, '/app'],
    // After /tmp, which would hide mounts below it.
    ...[...host.toolchains, ...readable].flatMap((directory) => readOnly(directory)),
    ...mounts.flatMap(({ source, target }) => [...passable(target), '--bind', source, target]),
    ...(inside.shown ?? []).flatMap(({ source, target }) => ['--ro-bind', source, target]),
    ...(inside.filter === undefined ? [] : ['--seccomp', String(inside.filter)]),
    // Last: root of the sandbox is memory, and not limited where there are no control groups.
    ...['--remount-ro', '/'],
    ...['--chdir', '/app'],
  ];
}

function namespaceArguments({ isRoot }: RuntimeHost): string[] {
  const namespaces = ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--hostname', HOST_NAME];
  return ['--die-with-parent', ...namespaces, ...(isRoot ? [] : ['--unshare-user'])];
}

function systemArguments({ runDirectory }: Inside): string[] {
  return [
    ...['--ro-bind', '/usr', '/usr'],
    ...rootLinks(),
    ...['--perms', '0755', '--dir', '/etc'],
    ...etcEntries().flatMap((name) => [...passable(`/etc/${name}`), '--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
    ...['--ro-bind', path.join(runDirectory, 'etc/passwd'), '/etc/passwd'],
    ...['--ro-bind', path.join(runDirectory, 'etc/group'), '/etc/group'],
    ...['--ro-bind-try', path.join(runDirectory, 'etc/hosts'), '/etc/hosts'],
  ];
}

function scratchArguments({ runDirectory }: Inside): string[] {
  return [
    ...['--proc', '/proc'],
    ...['--dev', '/dev'],
    ...['--perms', '1777', '--tmpfs', '/dev/shm'],
    ...['--perms', '0755', '--dir', '/run'],
    ...['--perms', '0755', '--dir', '/var'],
    ...['--symlink', '/tmp', '/var/tmp'],
    ...['--bind', path.join(runDirectory, 'tmp'), '/tmp'],
  ];
}

/**
 * Its own limits, where languages look for them: V8, the JVM and .NET size their heaps by them, Go its threads. The
 * namespace makes its group the root of what it sees, also in /proc/self/cgroup and /proc/self/mountinfo.
 */
function groupArguments({ version, directories }: Group): string[] {
  const places =
    version === 2
      ? [{ source: directories.memory, target: CGROUPS }]
      : [
          ...controllers.map((name) => ({ source: directories[name], target: `${CGROUPS}/${name}` })),
          // The JVM takes no limit to be there without this controller, in which units have no group: a file of it.
          { source: CPUS, target: CPUS },
        ];
  return [
    '--unshare-cgroup-try',
    ...places.flatMap(({ source, target }) => [...passable(target), '--ro-bind-try', source, target]),
  ];
}

function readOnly(directory: string): string[] {
  return [...passable(directory), '--ro-bind', directory, directory];
}

// bwrap makes missing parents for their owner alone; the tenant must get through.
export function passable(target: string): string[] {
  const parents = target
    .split('/')
    .slice(1, -1)
    .map((_, i, all) => `/${all.slice(0, i + 1).join('/')}`);
  return parents
    .filter((parent) => !/^\/(usr(\/.*)?|app|tmp|proc|dev|etc)$/.test(parent))
    .flatMap((parent) => ['--perms', '0755', '--dir', parent]);
}

// Where /usr is merged these are links (Debian, Fedora), elsewhere directories (Alpine).
function rootLinks(): string[] {
  return ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'].flatMap((name) => {
    const stats = lstatSync(`/${name}`, { throwIfNoEntry: false });
    if (stats === undefined) return [];
    return stats.isSymbolicLink()
      ? ['--symlink', readlinkSync(`/${name}`), `/${name}`]
      : ['--ro-bind', `/${name}`, `/${name}`];
  });
}

function etcEntries(): string[] {
  return [...etc, ...readdirSync('/etc').filter((name) => /^python\d/.test(name))];
}

const bindAll = `
n=$1; shift
while [ "$n" -gt 0 ]; do mkdir -p -- "$2" && mount --bind -- "$1" "$2" || exit 125; shift 2; n=$((n - 1)); done
exec "$@"
`;

// mount(8) by root in a private mount namespace, which disappears with the last process in it.
function inOwnMounts(host: RuntimeHost, mounts: Inside['mounts']): string[] {
  if (host.unshare === null)
    throw new DriverError('unsupported', 'This host cannot show a volume at its mount path. Install bubblewrap.');
  const pairs = mounts.flatMap(({ source, target }) => [source, target]);
  return [
    host.unshare,
    '--mount',
    '--propagation',
    'private',
    '/bin/sh',
    '-c',
    bindAll,
    'platform-mounts',
    String(mounts.length),
    ...pairs,
  ];
}

// A volume over the system would leave a unit without a shell; a link in the files of a user must not lead a mount
// astray.
export function requireTargets({ files, mounts }: Pick<Inside, 'files' | 'mounts'>): void {
  for (const { target } of mounts) {
    const whole = path.posix.normalize(target) === target && target.startsWith('/');
    if (
      !whole ||
      /^\/(app|bin|sbin|lib\w*|usr|etc|proc|sys|dev|run|tmp|boot)?$/.test(target) ||
      /^\/(usr|etc|bin|sbin|lib\w*|proc|sys|dev)\//.test(target)
    ) {
      throw new DriverError(
        'invalid',
        `A volume cannot be mounted at ${target}, which belongs to the system. Use another path, for example /data.`,
      );
    }
    if (isWithin('/app', target)) requireNoLinks(files, target);
  }
}

function requireNoLinks(files: string, target: string): void {
  const parts = target.split('/').slice(2);
  parts.forEach((_, i) => {
    const one = path.join(files, ...parts.slice(0, i + 1));
    if (lstatSync(one, { throwIfNoEntry: false })?.isDirectory() === false)
      throw new DriverError('invalid', `A volume cannot be mounted at ${target}: a file or a link is in its way.`);
  });
}

export function isWithin(directory: string, target: string): boolean {
  return target === directory || target.startsWith(directory.endsWith('/') ? directory : `${directory}/`);
}
