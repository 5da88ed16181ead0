// What differs between systems, as functions of the system, so that tests cover those that they do not run on.
import * as path from 'node:path';

type Platform = NodeJS.Platform;
type Environment = Readonly<Record<string, string | undefined>>;

const pathOf = (platform: Platform): path.PlatformPath => (platform === 'win32' ? path.win32 : path.posix);

/** Where files of the person are: by the XDG Base Directory Specification, on Windows without it in APPDATA. */
export function configDirectoryOf(platform: Platform, env: Environment, home: string): string {
  const { isAbsolute, join } = pathOf(platform);
  // A relative path there is invalid, says the specification.
  const isSet = (given: string | undefined): given is string => given !== undefined && isAbsolute(given);
  if (isSet(env.XDG_CONFIG_HOME)) return join(env.XDG_CONFIG_HOME, 'svc');
  if (platform === 'win32' && isSet(env.APPDATA)) return join(env.APPDATA, 'svc');
  return join(home, '.config', 'svc');
}

export interface Invocation {
  program: string;
  args: string[];
  /** Whether the program is a line for the shell of the system. */
  shell: boolean;
}

/** An editor may have arguments of its own: `code --wait`. */
export function editorInvocation(platform: Platform, env: Environment, file: string): Invocation {
  const editor = env.VISUAL || env.EDITOR || (platform === 'win32' ? 'notepad' : 'vi');
  // No name of a file on Windows has a quote in it.
  if (platform === 'win32') return { program: `${editor} "${file}"`, args: [], shell: true };
  return { program: 'sh', args: ['-c', `${editor} "$1"`, 'sh', file], shell: false };
}

/** What opens an address. It never goes through a shell, which would read the `&` in it. */
export function browserInvocation(platform: Platform, env: Environment, url: string): Invocation {
  const programs: Partial<Record<Platform, string[]>> = {
    darwin: ['open'],
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  };
  const [program = '', ...args] = env.BROWSER ? [env.BROWSER] : (programs[platform] ?? ['xdg-open']);
  return { program, args: [...args, url], shell: false };
}

/** The target of a symbolic link, as an archive has it. */
export function linkTargetOf(platform: Platform, target: string): string {
  return platform === 'win32' ? target.replaceAll('\\', '/') : target;
}

/** Windows has no such bit: there a file is a program where its first bytes name an interpreter. */
export function isExecutableFile(platform: Platform, mode: number, readHead: () => string): boolean {
  return platform === 'win32' ? readHead() === '#!' : (mode & 0o100) !== 0;
}
