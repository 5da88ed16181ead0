// Packages that a process starts, and that are stated for development or in an optional group: they are installed too.
import type { PythonProject } from './python_project';
import { mainGroup, PRODUCTION, type PythonStatement } from './python_statement';

export interface ChosenGroups {
  groups: string[];
  extras: string[];
  /** Notes for the owner: sentences. */
  notes: string[];
}

/** Programs that have another name than their package. */
const packagesOfPrograms: Record<string, string> = { 'waitress-serve': 'waitress', 'django-admin': 'django' };

/** @param commands of the Procfile, and the start command that was found */
export function chooseGroups(
  project: PythonProject | null,
  statement: PythonStatement,
  installed: ReadonlySet<string>,
  commands: readonly string[],
): ChosenGroups {
  const main = statement.kind === 'group' ? [mainGroup(project!)!] : [];
  const chosen: ChosenGroups = { groups: main, extras: [], notes: [] };
  if (project === null || !['uv', 'poetry', 'pdm', 'project', 'group'].includes(statement.kind)) return chosen;
  const started = new Set(commands.flatMap(wordsOf));
  for (const [kind, found] of [
    ['extras', project.extras],
    ['groups', project.groups],
  ] as const)
    for (const [group, names] of byPreference(found)) {
      const name = names.find((one) => started.has(one) && !installed.has(one));
      if (name === undefined || chosen[kind].includes(group)) continue;
      // Once is enough, wherever else it is stated.
      started.delete(name);
      chosen[kind].push(group);
      chosen.notes.push(
        `The ${kind === 'extras' ? 'optional dependencies' : 'dependency group'} ${shown(group)} of pyproject.toml ` +
          `is installed too, because a process starts ${shown(name)}, which is stated there alone.`,
      );
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

function shown(text: string): string {
  return text.slice(0, 60).replace(/[^ -~]/g, '?');
}
