// Projects that uv alone installs as their authors state it: with a lock file, with sources or indexes of uv, or as
// members of a workspace (https://docs.astral.sh/uv/concepts/projects/workspaces/). Any other installer would pass over
// these and look for a private package in the public index.
import { isNamed } from '../node/workspace_patterns';
import type { SourceFiles } from '../source_files';
import { parseToml, stringsOf, table } from '../toml_file';
import type { PythonProject } from './python_project';

interface UvProject {
  /** Path of the lock file from the root directory; null where there is none. */
  lock: string | null;
}

const ORIGINS = ['sources', 'index', 'index-url', 'extra-index-url', 'default-index', 'find-links'];

/** null for a source that other installers read as well. */
export async function findUvProject(files: SourceFiles, project: PythonProject): Promise<UvProject | null> {
  if (await files.has('uv.lock')) return { lock: 'uv.lock' };
  for (const place of files.above()) {
    const text = await place.files.read('pyproject.toml');
    if (text === null || !isMember(text, place.below)) continue;
    return { lock: (await place.files.has('uv.lock')) ? `${place.up}/uv.lock` : null };
  }
  return hasUvOrigins(project) ? { lock: null } : null;
}

/** Of requirement files too: no other installer reads them. */
export function hasUvOrigins(project: PythonProject | null): boolean {
  return ORIGINS.some((name) => name in table(project?.tool.uv));
}

function isMember(text: string, directory: string): boolean {
  const { uv } = table(parseToml(text, 'pyproject.toml').tool);
  const workspace = table(table(uv).workspace);
  const excluded = (stringsOf(workspace.exclude) ?? []).map((pattern) => `!${pattern}`);
  return isNamed(directory, [...(stringsOf(workspace.members) ?? []), ...excluded]);
}
