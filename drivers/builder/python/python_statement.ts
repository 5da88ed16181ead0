// Where a Python source states its packages. The first that applies is installed; what is there besides is named in the
// log, and what nobody here reads is refused with a sentence: a source that starts without its packages would only say
// that a module is missing.
import { BuildError } from '../../builder';
import type { SourceFiles } from '../source_files';
import { findRequirements, requirementLines } from './python_requirements';
import type { PythonProject } from './python_project';
import { findUvProject } from './uv_project';

export type PythonStatement =
  | { kind: 'requirements'; file: string }
  | { kind: 'uv'; lock: string | null }
  | { kind: 'poetry' | 'pdm' | 'project' | 'group'; file: string }
  | { kind: 'pylock'; file: string }
  | { kind: 'pipfile'; file: 'Pipfile' | 'Pipfile.lock' }
  | { kind: 'setup'; file: 'setup.py' | 'setup.cfg' }
  | { kind: 'none' };

/** @throws BuildError where several requirement files could be meant */
export async function findStatement(files: SourceFiles, project: PythonProject | null): Promise<PythonStatement> {
  const requirements = await requirementLines(files, 'requirements.txt');
  if (requirements !== null && requirements.lines.length > 0) return { kind: 'requirements', file: 'requirements.txt' };
  const locked = await findLock(files, project);
  if (locked !== null) return locked;
  if (project?.isProject && (project.requirements?.length || project.isPackage)) return ofProject(project);
  const file = await findRequirements(files);
  if (file !== null) return { kind: 'requirements', file };
  for (const setup of ['setup.py', 'setup.cfg'] as const)
    if (await isSetup(files, setup)) return { kind: 'setup', file: setup };
  if (project !== null && !project.isProject && mainGroup(project) !== null)
    return { kind: 'group', file: 'pyproject.toml' };
  // Packages that nothing states are those of `[project]` without any.
  if (project?.isProject && requirements === null) return ofProject(project);
  return { kind: 'none' };
}

async function findLock(files: SourceFiles, project: PythonProject | null): Promise<PythonStatement | null> {
  const uv = project === null ? null : await findUvProject(files, project);
  if (uv !== null && (uv.lock !== null || project?.isProject)) return { kind: 'uv', lock: uv.lock };
  for (const kind of ['poetry', 'pdm'] as const)
    if (project !== null && (await files.has(`${kind}.lock`))) return { kind, file: `${kind}.lock` };
  if (project !== null && 'rye' in project.tool && (await files.has('requirements.lock')))
    return { kind: 'requirements', file: 'requirements.lock' };
  const names = await files.names('.');
  const pylocks = names.filter((name) => /^pylock(?:\.[\w-]+)?\.toml$/.test(name));
  const pylock = ['pylock.toml', ...PRODUCTION.map((name) => `pylock.${name}.toml`)].find((name) =>
    pylocks.includes(name),
  );
  if (pylock ?? pylocks.length === 1) return { kind: 'pylock', file: pylock ?? pylocks[0]! };
  for (const file of ['Pipfile.lock', 'Pipfile'] as const) if (await files.has(file)) return { kind: 'pipfile', file };
  return null;
}

/** uv and pip know nothing of indexes that are stated for others. @throws BuildError */
function ofProject({ otherIndexes }: PythonProject): PythonStatement {
  if (otherIndexes === null) return { kind: 'project', file: 'pyproject.toml' };
  const [tool = ''] = otherIndexes.split('.');
  const lock = tool === 'rye' ? '' : `${tool}.lock, or a `;
  throw new BuildError(
    `pyproject.toml names indexes of packages for ${tool} (tool.${otherIndexes}), which this platform cannot pass ` +
      `on: a private package could come from the public index. Commit a ${lock}` +
      'requirements.txt with the index and the versions, or name the indexes in `tool.uv.index` and commit a uv.lock.',
  );
}

export const PRODUCTION = ['production', 'prod', 'deploy'];

/** The dependency group that runs (PEP 735), where there is no `[project]` whose dependencies would. */
export function mainGroup({ groups }: PythonProject): string | null {
  return [...PRODUCTION, 'main', 'default', 'app', 'server', 'base'].find((name) => name in groups) ?? null;
}

/** Not one with settings of linters only. */
async function isSetup(files: SourceFiles, file: 'setup.py' | 'setup.cfg'): Promise<boolean> {
  const text = (await files.read(file)) ?? '';
  return file === 'setup.py' ? /\bsetup\s*\(/.test(text) : /^\[(?:options|metadata)\]/m.test(text);
}

const others = ['requirements.txt', 'uv.lock', 'poetry.lock', 'pdm.lock', 'pylock.toml', 'Pipfile.lock', 'Pipfile'];

/** What is there besides, for the log: of two statements one is passed over. */
export async function otherStatements(files: SourceFiles, statement: PythonStatement): Promise<string | null> {
  if (statement.kind === 'none') return null;
  const used = statement.kind === 'uv' ? (statement.lock ?? 'pyproject.toml') : statement.file;
  const found: string[] = [];
  for (const name of others)
    if (name !== used && !(used === 'Pipfile.lock' && name === 'Pipfile') && (await files.has(name))) found.push(name);
  const lines = found.includes('requirements.txt') ? await requirementLines(files, 'requirements.txt') : null;
  const unread = found.filter((name) => name !== 'requirements.txt' || lines!.lines.length > 0);
  if (unread.length === 0) return null;
  return `Packages are installed from ${used}; ${unread.join(', ')} is not read. Remove what you do not use.`;
}

/** For sources that no file above describes. @throws BuildError */
export async function requireReadable(
  files: SourceFiles,
  project: PythonProject | null,
  hasStart: boolean,
): Promise<void> {
  if (await files.has('Dockerfile')) return;
  const groups = Object.keys(project?.groups ?? {});
  if (hasStart && groups.length > 0 && !project!.isProject)
    throw new BuildError(
      `pyproject.toml has only the dependency groups ${shown(groups)}, and none of them is for production. Name the ` +
        'packages that run in a group `production`, or in `dependencies` of `[project]`.',
    );
  for (const file of ['environment.yml', 'environment.yaml', 'conda.yml', 'pixi.toml'])
    if ((await files.has(file)) && (hasStart || !(await hasOtherLanguage(files))))
      throw new BuildError(
        `The packages are stated in ${file}, which conda${file === 'pixi.toml' ? ' (pixi)' : ''} reads and this ` +
          'platform does not. State those that the application imports in a requirements.txt or a pyproject.toml, ' +
          'or add a Dockerfile.',
      );
}

async function hasOtherLanguage(files: SourceFiles): Promise<boolean> {
  for (const name of ['package.json', 'go.mod', 'index.html']) if (await files.has(name)) return true;
  return false;
}

function shown(names: string[]): string {
  return names
    .slice(0, 8)
    .join(', ')
    .slice(0, 200)
    .replace(/[^ -~]/g, '?');
}
