// The package manager of a Node.js source: its version, and its commands.
import { majorOf } from '../../toolchain/versions';
import type { Package } from './package_json';
import type { SourceFiles } from '../source_files';

export type ManagerName = 'npm' | 'yarn' | 'pnpm' | 'bun';

export interface PackageManager {
  name: ManagerName;
  lockFile: string | null;
  /** Version range; null where any version works. */
  range: string | null;
  /** The source of the range, for messages. */
  statedBy: string | null;
  /** Yarn without node_modules (Plug'n'Play): programs run only through yarn. */
  isPnp: boolean;
}

const lockFiles: [file: string, manager: ManagerName][] = [
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
  ['yarn.lock', 'yarn'],
  ['pnpm-lock.yaml', 'pnpm'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
];

const CLASSIC_PRUNE = 'yarn install --production --frozen-lockfile --ignore-scripts --prefer-offline --non-interactive';

export async function findPackageManager(found: Package, files: SourceFiles): Promise<PackageManager> {
  const present: typeof lockFiles = [];
  for (const lock of lockFiles) if (await files.has(lock[0])) present.push(lock);
  const stated = lockFiles.find(([, name]) => name === found.packageManager?.name)?.[1] ?? null;
  const [file, owner] = present.find(([, name]) => name === stated) ?? present[0] ?? [null, null];
  const name = stated ?? owner ?? 'npm';
  const lockFile = owner === name ? file : null;
  const isPnp = name === 'yarn' && (await usesPnp(found, lockFile, files));
  const range = statedRange(found, name);
  if (range !== null) return { name, lockFile, isPnp, ...range };
  return { name, lockFile, isPnp, range: await rangeOfLockFile(name, lockFile, files), statedBy: lockFile };
}

/** Includes development dependencies, which the build script needs and NODE_ENV=production would exclude. */
export function installCommand({ name, lockFile }: PackageManager, version: string): string {
  const frozen = lockFile !== null;
  switch (name) {
    case 'npm':
      return `npm ${frozen ? 'ci' : 'install'} --include=dev --prefer-offline --no-audit --no-fund`;
    case 'pnpm':
      return `pnpm install --prod=false ${frozen ? '--frozen-lockfile' : '--no-frozen-lockfile'}`;
    case 'bun':
      return `bun install${frozen ? ' --frozen-lockfile' : ''}`;
    case 'yarn':
      if (majorOf(version) >= 2) return `yarn install ${frozen ? '--immutable' : '--no-immutable'}`;
      return `yarn install --production=false --non-interactive${frozen ? ' --frozen-lockfile' : ''}`;
  }
}

/** Removes development dependencies after the build; null where the package manager has no safe way. */
export function pruneCommand({ name, lockFile }: PackageManager, version: string, isWorkspace: boolean): string | null {
  switch (name) {
    case 'npm':
      return 'env -u npm_config_include npm prune --omit=dev --ignore-scripts --no-audit --no-fund';
    case 'pnpm':
      return isWorkspace ? null : 'env -u npm_config_production pnpm prune --prod --ignore-scripts';
    case 'yarn':
      if (majorOf(version) >= 4) return 'yarn workspaces focus --all --production';
      if (majorOf(version) >= 2 || lockFile === null) return null;
      return `env -u YARN_PRODUCTION ${CLASSIC_PRUNE}`;
    case 'bun':
      return null;
  }
}

export function runCommand(name: ManagerName, script: string): string {
  return name === 'npm' && script === 'start' ? 'npm start' : `${name} run ${script}`;
}

function statedRange(
  { packageManager, engines }: Package,
  name: ManagerName,
): { range: string; statedBy: string } | null {
  if (packageManager?.name === name && packageManager.version !== null)
    return { range: packageManager.version, statedBy: 'packageManager' };
  const range = engines[name];
  return range === undefined ? null : { range, statedBy: `engines.${name}` };
}

/** Only versions with the same format use a lock file unchanged. */
async function rangeOfLockFile(name: ManagerName, lockFile: string | null, files: SourceFiles): Promise<string | null> {
  // The format is stated at the beginning, and lock files of workspaces may be large.
  const text = lockFile === null || name === 'bun' ? '' : ((await files.readHead(lockFile)) ?? '');
  if (name === 'yarn') return yarnRange(text, await files.has('.yarnrc.yml'));
  if (name === 'pnpm') return pnpmRange(/^lockfileVersion:\s*['"]?(\d+(?:\.\d+)?)/m.exec(text)?.[1]);
  return name === 'bun' ? '^1' : null;
}

function yarnRange(lock: string, hasSettings: boolean): string {
  const format = /^__metadata:[ \t]*\r?\n[ \t]+version:[ \t]*(\d+)/m.exec(lock)?.[1];
  if (format === undefined) return hasSettings && lock === '' ? '^4' : '^1';
  if (Number(format) >= 7) return '^4';
  return Number(format) === 6 ? '^3' : '^2';
}

function pnpmRange(format: string | undefined): string {
  const number = Number(format ?? 9);
  if (number >= 9) return '^10 || ^9';
  if (number >= 6) return '^8';
  return number >= 5.4 ? '^7' : '^6';
}

async function usesPnp(found: Package, lockFile: string | null, files: SourceFiles): Promise<boolean> {
  const settings = (await files.read('.yarnrc.yml')) ?? '';
  const linker = /^nodeLinker:\s*["']?([\w-]+)/m.exec(settings)?.[1];
  if (linker !== undefined) return linker === 'pnp';
  const stated = found.packageManager?.name === 'yarn' ? found.packageManager.version : null;
  if (stated !== null) return majorOf(stated) >= 2;
  return yarnRange(lockFile === null ? '' : ((await files.readHead(lockFile)) ?? ''), settings !== '') !== '^1';
}
