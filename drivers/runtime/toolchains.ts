// Languages that are installed outside of /usr: the node that runs us, a pyenv, an nvm, a go below /opt or /usr/local.
import { existsSync, realpathSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { systemPath, isWithin } from './sandbox/sandbox';

const programs = [
  'node',
  'npm',
  'npx',
  'yarn',
  'pnpm',
  'corepack',
  'python3',
  'python',
  ...Array.from({ length: 12 }, (_, index) => `python3.${index + 8}`),
  'poetry',
  'uv',
  'pip3',
  'pip',
  'go',
  'bun',
  'deno',
  'ruby',
  'php',
];
const versionManagers = /^\.(nvm|fnm|volta|pyenv|asdf|goenv|rbenv|sdkman|bun|deno|nodenv)$/;
const system = ['/usr', '/bin', '/sbin', '/lib', '/lib64'];

/** Directories that a sandbox needs besides /usr. Never a whole home directory, nor a parent of `hidden`. */
export function toolchains(hidden: string): string[] {
  const found = languagePrograms().flatMap(({ directory, file }) => [
    languageRoot(directory),
    languageRoot(path.dirname(file)),
  ]);
  if (existsSync('/nix/store')) found.push('/nix/store');
  const fit = [...new Set(found)].filter(
    (one) => !system.some((place) => isWithin(place, one)) && !isWithin(one, hidden) && one !== '/',
  );
  return fit.filter((one) => !fit.some((other) => other !== one && isWithin(other, one)));
}

/** PATH for units: what of ours leads to these languages and can be reached, then the system. */
export function languagePaths(visible: string[], isReachable: (directory: string) => boolean): string {
  const ours = languagePrograms()
    .map(({ directory }) => directory)
    .filter((directory) => [...visible, ...system].some((one) => isWithin(one, directory)) && isReachable(directory));
  return [...new Set([...ours, ...systemPath.split(':')])].join(':');
}

function languagePrograms(): { directory: string; file: string }[] {
  const entries = (process.env.PATH ?? '')
    .split(':')
    .filter((entry) => path.isAbsolute(entry) && !entry.includes('/node_modules/'));
  const found = [...entries, path.dirname(process.execPath)].flatMap((directory) => {
    const there = programs.map((name) => path.join(directory, name)).filter((file) => existsSync(file));
    return there.map((file) => ({ directory, file: realpathSync(file) }));
  });
  return found;
}

// The directory that holds bin/ and lib/ of a language: all of a version manager, since its shims lead to its other
// parts.
function languageRoot(bin: string): string {
  const parts = bin.split('/');
  const manager = parts.findIndex((part) => versionManagers.test(part));
  if (manager > 0) return parts.slice(0, manager + 1).join('/');
  const prefix = path.dirname(bin);
  return isHome(prefix) || isHome(path.dirname(prefix)) || prefix === '/opt' ? bin : prefix;
}

function isHome(directory: string): boolean {
  return (
    directory === '/' ||
    directory === '/root' ||
    directory === '/home' ||
    directory === '/Users' ||
    directory === ownHome() ||
    ['/home', '/Users'].includes(path.dirname(directory))
  );
}

/** null for a user without a name on the host and without HOME. */
function ownHome(): string | null {
  try {
    return os.homedir();
  } catch {
    return null;
  }
}
