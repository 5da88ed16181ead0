// The root of an image as a unit sees it, in the user namespace of a range, or in one with a single user id. A second
// bubblewrap runs within the sandbox of the unit, as a user of the tenant: what the image holds, whatever its links
// lead to, is only ever resolved where nothing of the host is. Nothing of the image is executed before, so it needs
// neither a shell nor a C library.
import { lstatSync } from 'node:fs';
import path from 'node:path';
import { DriverError } from '../../../core/driver';
import { environmentBytes } from '../../../core/process/variables';
import type { UnitImage, UnitSpec } from '../../runtime';
import { CGROUPS, passable, requireTargets } from './sandbox';
import { FILTER_FD } from './seccomp';
import { inForeground } from './terminal';
import { RANGE_FD } from './user_ranges';

/** Where the sandbox around it shows a volume: its mount path counts within the image alone. */
const VOLUMES = '/mnt';
/** File descriptor from which bubblewrap reads its options: variables are secrets, and would show among arguments. */
const OPTIONS_FD = 6;

export function outerMounts({ mounts }: UnitSpec): UnitSpec['mounts'] {
  return mounts.map(({ source }, position) => ({ source, target: `${VOLUMES}/${position}` }));
}

/**
 * Capabilities of an image's root in its user namespace: those of Docker, except the ones that reach beyond the
 * namespace (AUDIT_WRITE, MKNOD, NET_RAW).
 */
export const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
] as const;

/**
 * @param hasRange its user namespace is in RANGE_FD, and the process that enters it has the user of the image
 * @param files the root of the image, on the host
 * @param hasGroup the sandbox around it shows its control group
 * @param filtered it takes a filter of system calls from FILTER_FD; the sandbox around it must still make this one
 * @returns the command that enters the image, and the options that it reads from OPTIONS_FD
 * @throws DriverError invalid
 */
export function imageSandbox(
  bubblewrap: string,
  spec: UnitSpec,
  image: UnitImage,
  { hasRange, filtered, hasGroup, files }: { hasRange: boolean; filtered: boolean; hasGroup: boolean; files: string },
): { command: string[]; options: string[] } {
  requireTargets({ files: '/', mounts: spec.mounts.filter(({ target }) => !target.startsWith('/app')) });
  const variables = Object.entries({ HOME: image.user.home, ...image.env, ...spec.env });
  requireVariables(variables);
  const line = spec.input === 'terminal' ? inForeground(spec.command).join('\n') : spec.command;
  const inside = image.command ?? ['/bin/sh', '-c', line];
  if (inside.length === 0)
    throw new DriverError('invalid', 'The image names no command. Set the `command` of the process type.');
  const options = [
    ...(hasRange ? rangeOptions(image) : singleOptions(image)),
    ...rootOptions(files),
    ...(hasGroup ? [...passable(CGROUPS), '--ro-bind', CGROUPS, CGROUPS] : []),
    ...spec.mounts.flatMap(({ target }, position) => [
      ...(hasRange ? passable(target) : []),
      ...['--bind', `${VOLUMES}/${position}`, target],
    ]),
    ...(spec.readable ?? []).flatMap((directory) => ['--ro-bind', directory, directory]),
    ...['--chdir', image.working_directory],
    '--clearenv',
    ...variables.flatMap(([name, value]) => ['--setenv', name, value]),
  ];
  const filter = filtered ? ['--seccomp', String(FILTER_FD)] : [];
  return { command: [bubblewrap, ...filter, '--args', String(OPTIONS_FD), '--', ...inside], options };
}

function singleOptions({ user }: UnitImage): string[] {
  return ['--unshare-user', '--uid', String(user.uid), '--gid', String(user.gid)];
}

/** Others than root have no capability, and no program gives them one. */
function rangeOptions({ user }: UnitImage): string[] {
  const capabilities = user.uid === 0 ? CAPABILITIES.flatMap((name) => ['--cap-add', `CAP_${name}`]) : [];
  return ['--userns', String(RANGE_FD), ...capabilities];
}

// Without a /tmp of its own, which may have files of its build, an image gets that of the unit.
function rootOptions(files: string): string[] {
  const hasOwn = lstatSync(path.join(files, 'tmp'), { throwIfNoEntry: false }) !== undefined;
  return [
    ...['--bind', '/app', '/'],
    ...['--bind', '/proc', '/proc'],
    ...['--dev', '/dev'],
    ...['--perms', '1777', '--tmpfs', '/dev/shm'],
    ...(hasOwn ? [] : ['--bind', '/tmp', '/tmp']),
    ...['resolv.conf', 'hosts'].flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
  ];
}

/** Of 2 MiB for arguments and variables, with room for the pointers to them (execve(2), a stack of 8 MiB). */
const variablesBytesMax = 2 * 2 ** 20 - 64 * 1024;

/** @throws DriverError invalid */
export function requireVariables(variables: [name: string, value: string][]): void {
  const bytes = environmentBytes(Object.fromEntries(variables));
  if (bytes > variablesBytesMax)
    throw new DriverError(
      'invalid',
      `The environment variables need ${bytes} bytes together, and no program starts with more than ` +
        `${variablesBytesMax}. Remove some, or keep large values in a file, a volume or a bucket.`,
    );
  const bad = variables.find(([name, value]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'));
  if (bad === undefined) return;
  throw new DriverError('invalid', `The environment variable ${JSON.stringify(bad[0])} cannot be given to a program.`);
}
