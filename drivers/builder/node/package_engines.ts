// Node.js requirements of packages: npm records their `engines` in the lock file.
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

/** Each package is compared with each version of Node.js. */
const PACKAGES_MAX = 500;
const LOCK_BYTES_MAX = 8 << 20;

/**
 * Requirements of direct dependencies; transitive ones are their concern.
 * @param member directory of the package within its workspace; empty for the top
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

/** For lock file version 2 and later. npm itself reports an unreadable file. */
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
