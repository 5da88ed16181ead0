// Which Node.js the packages of a source need, as far as its lock file says so: npm writes their `engines` into it.
import type { PackageManager } from './package_manager';
import type { SourceFiles } from '../source_files';

export interface PackageNeed {
  name: string;
  /** `engines.node` of the package. */
  range: string;
}

interface LockedPackage {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  engines?: { node?: unknown } | unknown[];
}

/** Each is compared with each version of Node.js. */
const PACKAGES_MAX = 500;
const LOCK_BYTES_MAX = 8 << 20;

/**
 * Of the packages that the source names itself; others are theirs to choose.
 * @param member the directory of the package within its workspace, `` of the one at the top
 */
export async function findPackageNeeds(
  files: SourceFiles,
  { name, lockFile }: PackageManager,
  member: string,
): Promise<PackageNeed[]> {
  if (name !== 'npm' || lockFile === null) return [];
  const packages = parsePackages(await files.read(lockFile, LOCK_BYTES_MAX).catch(() => null));
  const own = packages[member];
  if (!isObject(own)) return [];
  const names = [own.dependencies, own.devDependencies, own.optionalDependencies].flatMap((one) =>
    isObject(one) ? Object.keys(one) : [],
  );
  return [...new Set(names)].slice(0, PACKAGES_MAX).flatMap((one) => {
    const nested = member === '' ? undefined : packages[`${member}/node_modules/${one}`];
    const range = nodeRange(nested ?? packages[`node_modules/${one}`]);
    return range === null ? [] : [{ name: one, range }];
  });
}

/** From version 2 of the format on. What nobody can read, npm itself complains of. */
function parsePackages(text: string | null): Record<string, LockedPackage | undefined> {
  try {
    const { packages } = JSON.parse(text ?? '{}') as { packages?: unknown };
    return isObject(packages) ? (packages as Record<string, LockedPackage | undefined>) : {};
  } catch {
    return {};
  }
}

function nodeRange(found: LockedPackage | undefined): string | null {
  const engines = isObject(found) ? found.engines : undefined;
  return isObject(engines) && 'node' in engines && typeof engines.node === 'string' ? engines.node : null;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
