// A source that is a member of an npm, yarn, pnpm or bun workspace: packages are installed at its top, with its lock
// file and package manager. The top is searched above the root directory, never outside of the source.
import { parsePackage, type Package } from './package_json';
import type { Place, SourceFiles } from '../source_files';
import { isNamed, pnpmPackages } from './workspace_patterns';

export interface Workspace {
  /** package.json at the top. */
  found: Package;
  /** Files of the top directory. */
  files: SourceFiles;
  /** From the root directory to the top, `../..`; `.` where the root directory is the top. */
  up: string;
  /** From the top to the root directory, `apps/web`; empty where the root directory is the top. */
  member: string;
  patterns: string[];
}

/** The nearest workspace that includes the root directory, else the root directory itself. @throws BuildError */
export async function findWorkspace(found: Package, files: SourceFiles): Promise<Workspace> {
  for (const place of files.above()) {
    const top = await readPackage(place);
    const patterns = await workspacePatterns(top, place.files);
    if (isNamed(place.below, patterns))
      return { found: top ?? parsePackage('{}'), files: place.files, up: place.up, member: place.below, patterns };
  }
  return { found, files, up: '.', member: '', patterns: [] };
}

/** Manifests above the root directory, the nearest first. */
export async function packagesAbove(files: SourceFiles): Promise<Package[]> {
  const all = await Promise.all(files.above().map(readPackage));
  return all.filter((one) => one !== null);
}

async function readPackage({ files, up }: Place): Promise<Package | null> {
  const text = await files.read('package.json');
  return text === null ? null : parsePackage(text, `${up}/package.json`);
}

/** Patterns of the members, of a top. */
export async function workspacePatterns(top: Package | null, files: SourceFiles): Promise<string[]> {
  return [...(top?.workspaces ?? []), ...pnpmPackages((await files.readHead('pnpm-workspace.yaml')) ?? '')];
}
