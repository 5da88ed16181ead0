// Packages that a process starts, and that are stated for development or in an optional group: they are installed too.
import { printable } from '../message_text';
import type { PythonProject } from './python_project';
import { PRODUCTION, type PythonStatement } from './python_statement';

export interface ChosenGroups {
  groups: string[];
  extras: string[];
  /** Notes for the owner: sentences. */
  notes: string[];
}

/** Names of groups that are for nothing else, so that their packages are not all started by name. */
const MEANT = ['production', 'prod'];
/** Programs that have another name than their package. */
const packagesOfPrograms: Record<string, string> = { 'waitress-serve': 'waitress', 'django-admin': 'django' };

/** @param commands of the Procfile, or the start command that was found */
export function chooseGroups(
  project: PythonProject | null,
  statement: PythonStatement,
  installed: ReadonlySet<string>,
  commands: readonly string[],
): ChosenGroups {
  const chosen: ChosenGroups = { groups: [], extras: [], notes: [] };
  if (project === null || !['uv', 'poetry', 'pdm', 'project'].includes(statement.kind)) return chosen;
  const started = new Set(commands.flatMap(wordsOf));
  for (const kind of ['extras', 'groups'] as const)
    for (const [group, names] of byPreference(project[kind])) {
      // Optional packages of Poetry are known to Poetry alone.
      if (kind === 'extras' && statement.kind === 'project' && !project.isStandard) continue;
      const name = names.find((one) => started.has(one) && !installed.has(one));
      if (name === undefined && !MEANT.includes(group)) continue;
      // Once is enough, wherever else they are stated.
      names.forEach((one) => started.delete(one));
      chosen[kind].push(group);
      const [what, are] = kind === 'extras' ? ['optional dependencies', 'are'] : ['dependency group', 'is'];
      const why =
        name === undefined
          ? `${are === 'are' ? 'they are' : 'it is'} for production`
          : `a process starts ${printable(name)}, which is stated there alone`;
      chosen.notes.push(`The ${what} ${printable(group)} of pyproject.toml ${are} installed too, because ${why}.`);
    }
  return chosen;
}

/** Groups of production first. */
function byPreference(found: Record<string, string[]>): [string, string[]][] {
  const rank = ([group]: [string, string[]]): number => (PRODUCTION.includes(group) ? 0 : 1);
  return Object.entries(found)
    .filter(([group]) => /^[\w.-]+$/.test(group) && !group.startsWith('-'))
    .sort((one, other) => rank(one) - rank(other));
}

function wordsOf(command: string): string[] {
  const words = command.toLowerCase().match(/[a-z0-9][\w.-]*/g) ?? [];
  return words.map((word) => packagesOfPrograms[word] ?? word.replace(/[-_.]+/g, '-'));
}
