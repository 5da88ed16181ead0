// Projects that uv alone installs as their authors state it: with a lock file, with sources or indexes of uv, or as
// members of a workspace (https://docs.astral.sh/uv/concepts/projects/workspaces/). Any other installer would pass over
// these and look for a private package in the public index.
import { isNamed } from '../node/workspace_patterns';
import type { SourceFiles } from '../source_files';

export interface UvProject {
  /** Path of the lock file from the root directory; null where there is none. */
  lock: string | null;
}

const ORIGINS = /^[ \t]*\[\[?tool\.uv\.(?:sources|index)\b/m;
const SETTINGS_OF_ORIGINS = /^[ \t]*(?:index|index-url|extra-index-url|default-index|find-links|sources)[ \t]*[=.]/m;

/** null for a source that other installers read as well. */
export async function findUvProject(files: SourceFiles): Promise<UvProject | null> {
  if (await files.has('uv.lock')) return { lock: 'uv.lock' };
  for (const place of files.above()) {
    const text = await place.files.read('pyproject.toml');
    if (text === null || !isMember(text, place.below)) continue;
    return { lock: (await place.files.has('uv.lock')) ? `${place.up}/uv.lock` : null };
  }
  const own = (await files.read('pyproject.toml')) ?? '';
  return ORIGINS.test(own) || SETTINGS_OF_ORIGINS.test(tableOf(own, 'tool.uv')) ? { lock: null } : null;
}

/** The lines of a TOML table, without the tables below it. */
function tableOf(text: string, name: string): string {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => line.replace(/#.*/, '').trim() === `[${name}]`);
  if (start < 0) return '';
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => /^\s*\[{1,2}[\w."'-]+\]/.test(line));
  return rest.slice(0, end < 0 ? rest.length : end).join('\n');
}

function isMember(text: string, directory: string): boolean {
  const table = tableOf(text, 'tool.uv.workspace');
  const excluded = stringsOf(table, 'exclude').map((pattern) => `!${pattern}`);
  return isNamed(directory, [...stringsOf(table, 'members'), ...excluded]);
}

/** The strings of a list of a TOML table, in linear time: the table is the tenant's. */
function stringsOf(table: string, key: string): string[] {
  const lines = table.split('\n').map((line) => line.replace(/#.*/, ''));
  const start = lines.findIndex((line) => {
    const [name = '', value = ''] = line.split('=', 2).map((part) => part.trim());
    return name === key && value.startsWith('[');
  });
  if (start < 0) return [];
  const rest = lines.slice(start).join('\n');
  const end = rest.indexOf(']');
  const list = rest.slice(rest.indexOf('['), end < 0 ? rest.length : end);
  return [...list.matchAll(/"([^"]*)"|'([^']*)'/g)].map(([, double, single]) => double ?? single ?? '');
}
