// What pyproject.toml says, as far as builds need it: packages, their groups, and where they come from.
import type { TomlTable } from '../../../core/formats/toml';
import type { SourceFiles } from '../source_files';
import { asText, parseToml, stringsOf, table } from '../toml_file';

export interface PythonProject {
  /** It describes packages, and not only settings of linters. */
  isProject: boolean;
  /** It has a table `[project]`, which all programs read. */
  isStandard: boolean;
  name: string | null;
  /** Requirements of the application; null where none are stated, or a program finds them out. */
  requirements: string[] | null;
  /** It has scripts or finds out its dependencies, so that it has to be installed itself. */
  isPackage: boolean;
  /** Names of packages by optional group: `project.optional-dependencies`, `tool.poetry.extras`. */
  extras: Record<string, string[]>;
  /** Names of packages by group of development: PEP 735, uv, Poetry, PDM. */
  groups: Record<string, string[]>;
  /** Table `[tool.*]`, as it is. */
  tool: Record<string, TomlTable>;
  /** Indexes of packages that are stated for another program than uv: `poetry.source`. */
  otherIndexes: string | null;
}

/** null for a missing file. @throws BuildError for invalid TOML */
export async function readProject(files: SourceFiles): Promise<PythonProject | null> {
  const text = await files.read('pyproject.toml');
  if (text === null) return null;
  const found = parseToml(text, 'pyproject.toml');
  const project = table(found.project);
  const tool = table(found.tool) as Record<string, TomlTable>;
  const poetry = table(tool.poetry);
  const stated = stringsOf(project.dependencies);
  const isDynamic = stringsOf(project.dynamic)?.includes('dependencies') ?? false;
  const scripts = [project.scripts, project['gui-scripts'], poetry.scripts].some((one) => keys(one).length > 0);
  return {
    isProject: ['project', 'build-system'].some((name) => name in found) || 'poetry' in tool,
    isStandard: 'project' in found,
    name: asText(project.name) ?? asText(poetry.name),
    requirements: isDynamic ? null : (stated ?? (keys(poetry.dependencies).length > 0 ? poetryNames(poetry) : null)),
    isPackage: isDynamic || ('build-system' in found && scripts),
    extras: { ...namesByGroup(project['optional-dependencies']), ...namesByGroup(poetry.extras) },
    groups: groupsOf(found, tool),
    tool,
    otherIndexes: otherIndexesOf(tool),
  };
}

/** The name of a requirement in lower case with `-` as separator (PEP 503), or none. */
export function packageNameOf(line: string): string[] {
  const name = /^([A-Za-z0-9][\w.-]*)/.exec(line)?.[1] ?? /#egg=([\w.-]+)/.exec(line)?.[1];
  return name === undefined ? [] : [name.toLowerCase().replace(/[-_.]+/g, '-')];
}

function keys(value: unknown): string[] {
  return Object.keys(table(value));
}

function poetryNames(poetry: TomlTable): string[] {
  return Object.entries(table(poetry.dependencies)).flatMap(([name, value]) => {
    if (name.toLowerCase() === 'python') return [];
    const extras = stringsOf(table(value).extras) ?? [];
    return [extras.length > 0 ? `${name}[${extras.join(',')}]` : name];
  });
}

function namesByGroup(value: unknown): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(table(value)).map(([group, lines]) => [group, (stringsOf(lines) ?? []).flatMap(packageNameOf)]),
  );
}

function groupsOf(found: TomlTable, tool: Record<string, TomlTable>): Record<string, string[]> {
  const poetry = table(tool.poetry);
  const ofPoetry = Object.entries(table(poetry.group)).map(([group, value]) => [
    group,
    keys(table(value).dependencies).flatMap(packageNameOf),
  ]);
  const older = [...(stringsOf(table(tool.uv)['dev-dependencies']) ?? []), ...keys(poetry['dev-dependencies'])];
  return {
    ...(older.length > 0 && { dev: older.flatMap(packageNameOf) }),
    ...namesByGroup(table(tool.pdm)['dev-dependencies']),
    ...(Object.fromEntries(ofPoetry) as Record<string, string[]>),
    ...namesByGroup(found['dependency-groups']),
  };
}

/** uv and pip know nothing of them. */
function otherIndexesOf(tool: Record<string, TomlTable>): string | null {
  const found = [
    ['poetry', 'source'],
    ['pdm', 'source'],
    ['rye', 'sources'],
  ].find(([name = '', key = '']) => Array.isArray(table(tool[name])[key]));
  return found?.join('.') ?? null;
}
