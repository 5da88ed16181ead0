// The Go module of a source and its workspace, which may be above the root directory, never outside of the source. Go
// finds both by itself; they say which programs there are and which Go they need.
import path from 'node:path';
import type { SourceFiles } from '../source_files';

export interface GoModule {
  /** go.mod. */
  text: string;
  /** From the root directory to the module: `.`, or `../..`. */
  up: string;
  /** The root directory in the module, `.` or `cmd/api`. */
  below: string;
}

export interface GoWorkspace {
  /** go.work. */
  text: string;
  up: string;
  /** Directories of its modules, relative to it: `apps/api`. */
  modules: string[];
}

/** The nearest module; null where the source has none. */
export async function findGoModule(files: SourceFiles): Promise<GoModule | null> {
  const own = await files.read('go.mod');
  if (own !== null) return { text: own, up: '.', below: '.' };
  for (const place of files.above()) {
    const text = await place.files.read('go.mod');
    if (text !== null) return { text, up: place.up, below: place.below };
  }
  return null;
}

/** The nearest workspace: Go uses no other. */
export async function findGoWorkspace(files: SourceFiles): Promise<GoWorkspace | null> {
  for (const place of [{ files, up: '.' }, ...files.above()]) {
    const text = await place.files.read('go.work');
    if (text !== null) return { text, up: place.up, modules: usedModules(text) };
  }
  return null;
}

/** Whether the module is one of the workspace: Go builds no other in it. */
export function isInWorkspace(module: GoModule, workspace: GoWorkspace, files: SourceFiles): boolean {
  const place = files.above().find(({ up }) => up === workspace.up);
  const directory = path.posix.join(place?.below ?? '.', module.up);
  return workspace.modules.includes(directory);
}

/** Name of the executable in the module's root: the last path element that is not a version, as for go build. */
export function moduleNameOf({ text }: GoModule): string | null {
  const parts = /^module\s+"?([\w./~-]+)"?/m.exec(text)?.[1]?.split('/') ?? [];
  return parts.filter((part, i) => i === 0 || !/^v\d+$/.test(part)).at(-1) ?? null;
}

/** Its modules below, for messages: a name that nobody types is left out. */
export function modulesBelow({ up, modules }: GoWorkspace): string[] {
  return up === '.' ? modules.filter((one) => one !== '.' && /^[\w./@+-]{1,80}$/.test(one)) : [];
}

/** `use ./api`, or a list in parentheses. */
function usedModules(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\/\/.*/, '').trim());
  const used: string[] = [];
  let isList = false;
  for (const line of lines) {
    if (isList && line === ')') isList = false;
    else if (/^use\s*\($/.test(line)) isList = true;
    else {
      const directory = isList ? line : /^use\s+(.+)$/s.exec(line)?.[1];
      if (directory)
        used.push(path.posix.join(directory.replace(/^["`](.*)["`]$/, '$1'), '.').replace(/\/$/, '') || '.');
    }
  }
  return used;
}
