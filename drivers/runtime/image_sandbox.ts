// The root of an image as a unit sees it. A second bubblewrap runs within the sandbox of the unit, as the user of the
// tenant: what the image holds, whatever its links lead to, is only ever resolved where nothing of the host is. Nothing
// of the image is executed before, so it needs neither a shell nor a C library.
import { DriverError } from '../driver';
import type { UnitImage, UnitSpec } from '../runtime';
import { requireTargets } from './sandbox';
import { FILTER_FD } from './seccomp';

/** Where the sandbox around it shows a volume: its mount path counts within the image alone. */
const VOLUMES = '/mnt';
/** File descriptor from which bubblewrap reads its options: variables are secrets, and would show among arguments. */
const OPTIONS_FD = 6;

export function outerMounts({ mounts }: UnitSpec): UnitSpec['mounts'] {
  return mounts.map(({ source }, position) => ({ source, target: `${VOLUMES}/${position}` }));
}

/**
 * @param filtered it takes a filter of system calls from FILTER_FD; the sandbox around it must still make this one
 * @returns the command that enters the image, and the options that it reads from OPTIONS_FD
 * @throws DriverError invalid
 */
export function imageSandbox(
  bubblewrap: string,
  spec: UnitSpec,
  image: UnitImage,
  filtered: boolean,
): { command: string[]; options: string[] } {
  requireTargets({ files: '/', mounts: spec.mounts.filter(({ target }) => !target.startsWith('/app')) });
  const variables = Object.entries({ HOME: image.user.home, ...image.env, ...spec.env });
  requireVariables(variables);
  const inside = image.command ?? ['/bin/sh', '-c', spec.command];
  if (inside.length === 0)
    throw new DriverError('invalid', 'The image names no command. Set the `command` of the process type.');
  const options = [
    ...rootOptions(image),
    ...spec.mounts.flatMap(({ target }, position) => ['--bind', `${VOLUMES}/${position}`, target]),
    ...(spec.readable ?? []).flatMap((directory) => ['--ro-bind', directory, directory]),
    ...['--chdir', image.working_directory],
    '--clearenv',
    ...variables.flatMap(([name, value]) => ['--setenv', name, value]),
  ];
  const filter = filtered ? ['--seccomp', String(FILTER_FD)] : [];
  return { command: [bubblewrap, ...filter, '--args', String(OPTIONS_FD), '--', ...inside], options };
}

function rootOptions({ user }: UnitImage): string[] {
  return [
    ...['--unshare-user', '--uid', String(user.uid), '--gid', String(user.gid)],
    ...['--bind', '/app', '/'],
    ...['--bind', '/proc', '/proc'],
    ...['--dev', '/dev'],
    ...['--perms', '1777', '--tmpfs', '/dev/shm'],
    ...['--bind', '/tmp', '/tmp'],
    ...['resolv.conf', 'hosts'].flatMap((name) => ['--ro-bind-try', `/etc/${name}`, `/etc/${name}`]),
  ];
}

/** @throws DriverError invalid */
export function requireVariables(variables: [name: string, value: string][]): void {
  const bad = variables.find(([name, value]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'));
  if (bad === undefined) return;
  throw new DriverError('invalid', `The environment variable ${JSON.stringify(bad[0])} cannot be given to a program.`);
}
