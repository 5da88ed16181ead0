// Installs packages of a Python source into one virtual environment beside its files: by uv from requirement files, its
// lock file, pylock.toml or pyproject.toml, by Poetry and PDM from their lock files, by pip where uv is not to be had.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { BuildError } from '../../builder';
import type { Tool } from '../../toolchain';
import type { BuildHost, Step } from '../language_plan';
import type { SourceFiles } from '../source_files';
import type { ChosenGroups } from './python_groups';
import { emptyEnvironment, environmentBin, environmentStep, finished, type EnvironmentKey } from './python_environment';
import { pipInstaller, uvInstaller, type Installer } from './python_installer';
import { LOCK_BYTES_MAX } from './python_names';
import type { PythonProject } from './python_project';
import { requirementLines } from './python_requirements';
import { ownSettings, versionSettings } from './python_settings';
import { mainGroup, type PythonStatement } from './python_statement';
import { hasUvOrigins } from './uv_project';
import { chooseInstaller, type Python } from './python_version';

export { environmentDirectory } from './python_environment';

interface Packages {
  /** Name of the installer, for the summary of the plan. */
  summary: string[];
  tools: Tool[];
  steps: Step[];
}

interface Stated {
  statement: PythonStatement;
  project: PythonProject | null;
  chosen: ChosenGroups;
  /** An additional package that the source does not state. */
  added: string | null;
}

type Locked = Pick<EnvironmentKey, 'files'>;

/** A command that installs, and what it is called. */
interface Installation {
  name: string;
  of: string;
  command: string;
  key?: Locked | null;
  tools?: Tool[];
}

/** @throws BuildError for a lock file whose program is unavailable */
export async function planPackages(
  files: SourceFiles,
  host: BuildHost,
  python: Python,
  stated: Stated,
): Promise<Packages> {
  const { statement, added } = stated;
  const isEmpty = statement.kind === 'none' || (statement.kind === 'project' && isWithoutPackages(stated));
  // No packages. The virtual environment hides the packages of the host.
  if (isEmpty && added === null) return { summary: [], tools: [], steps: [emptyEnvironment(python)] };
  const uv = await chooseInstaller('uv', host);
  const needsUv = statement.kind === 'uv' || (await files.has('uv.toml')) || hasUvOrigins(stated.project);
  if (uv === null && needsUv) throw new BuildError(missing(stateOfUv(statement), 'uv'));
  const installer = uv === null ? pipInstaller(added) : uvInstaller(uv, added);
  const own = await ownSettings(files);
  // Not before the key is made: each commit has another.
  const ownVersion = await versionSettings(files);
  const found = isEmpty ? plain(installer, added!, '', null) : await installation(files, host, installer, stated);
  const more = added !== null && isSeparate(statement) ? [installer.install('')] : [];
  const command = [found.command, ...more].join('\n');
  const key = found.key && {
    files: found.key.files,
    words: [createHash('sha256').update(command).digest('hex'), python.version, String(installer.version)],
  };
  const environment = environmentStep(python, uv !== null, key ?? null);
  return {
    summary: [`${found.name} of ${found.of}`],
    tools: [...installer.tools, ...(found.tools ?? [])],
    steps: [
      { ...environment, command: `${own}${environment.command}` },
      { name: found.name, command: `${own}${ownVersion}${finished(command, key ?? null)}` },
    ],
  };
}

function isWithoutPackages({ project, chosen }: Stated): boolean {
  return !project!.isPackage && !project!.requirements?.length && chosen.extras.length + chosen.groups.length === 0;
}

/** Their programs know nothing of a package that the source does not state. */
function isSeparate({ kind }: PythonStatement): boolean {
  return ['uv', 'poetry', 'pdm'].includes(kind);
}

function stateOfUv(statement: PythonStatement): string {
  if (statement.kind !== 'uv') return 'uv.toml or pyproject.toml with settings of uv';
  return statement.lock ?? 'pyproject.toml with settings of uv';
}

async function installation(
  files: SourceFiles,
  host: BuildHost,
  installer: Installer,
  { statement, project, chosen }: Stated,
): Promise<Installation> {
  switch (statement.kind) {
    case 'uv':
      return ofUvProject(statement.lock, chosen);
    case 'poetry':
    case 'pdm':
      return ofProgram(files, host, statement.kind, chosen, project!);
    case 'pylock':
      if (installer.name === 'pip install') throw new BuildError(missing(statement.file, 'uv'));
      return plain(installer, statement.file, `-r ${statement.file}`, await keyOf(files, [statement.file]));
    case 'requirements':
      return ofRequirements(files, installer, statement.file);
    case 'pipfile':
      return ofDependencies(installer, statement.file, statement.file === 'Pipfile.lock' ? ['Pipfile.lock'] : null);
    case 'setup':
      return itself(
        installer,
        statement.file,
        chosen,
        installer.name === 'pip install' ? null : `-r ${statement.file}`,
      );
    case 'group':
      return ofGroup(installer, mainGroup(project!)!);
    default:
      return ofProject(installer, project!, chosen);
  }
}

/** In a workspace uv would take a relative path from its top, and link to sources that do not move with the build. */
function ofUvProject(lock: string | null, { groups, extras }: ChosenGroups): Installation {
  const isAbove = lock !== 'uv.lock';
  const command = [
    `UV_PROJECT_ENVIRONMENT="$PWD/.platform/venv" UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy uv sync`,
    ...[...(lock === null ? [] : ['--frozen']), ...(isAbove ? ['--no-editable'] : [])],
    // A group that is excluded cannot be included.
    ...[...(groups.includes('dev') ? [] : ['--no-dev']), '--no-default-groups'],
    ...groups.map((group) => `--group ${group}`),
    ...extras.map((extra) => `--extra ${extra}`),
    `--python ${environmentBin}/python`,
  ].join(' ');
  const key = lock === null ? null : { files: [lock, 'pyproject.toml'] };
  return {
    ...{ name: 'uv install', of: lock ?? 'pyproject.toml', key },
    command: orWithoutItself(command, `${command} --no-install-project || exit 1`),
  };
}

/** Without development dependencies, into the environment that is there. */
async function ofProgram(
  files: SourceFiles,
  host: BuildHost,
  program: 'poetry' | 'pdm',
  { groups, extras }: ChosenGroups,
  project: PythonProject,
): Promise<Installation> {
  const lock = `${program}.lock`;
  const tool = await chooseInstaller(program, host);
  if (tool === null) throw new BuildError(missing(lock, program));
  const inside = `VIRTUAL_ENV="$PWD/.platform/venv" PATH="$PWD/${environmentBin}:$PATH"`;
  const extra = extras.map((one) => `--extras ${one}`);
  const command =
    program === 'poetry'
      ? [inside, 'poetry install --no-interaction --no-ansi', `--only ${['main', ...groups].join(',')}`, ...extra]
      : [inside, 'PDM_CHECK_UPDATE=0 pdm sync --fail-fast', ...pdmGroups(groups, extras, project)];
  const whole = command.join(' ');
  const without = program === 'poetry' ? `${whole} --no-root` : `${whole} --no-self`;
  return {
    ...{ name: `${program} install`, of: lock, tools: tool.tools, key: await keyOf(files, [lock, 'pyproject.toml']) },
    command: orWithoutItself(whole, `${without} || exit 1`),
  };
}

/** With `--prod` PDM passes over groups for development that are asked for. */
function pdmGroups(groups: string[], extras: string[], project: PythonProject): string[] {
  const others = Object.keys(project.groups).filter((group) => /^[\w.-]+$/.test(group) && !groups.includes(group));
  const without = groups.length > 0 ? others.map((group) => `--without ${group}`) : ['--prod'];
  return [...without, ...[...groups, ...extras].map((group) => `-G ${group}`)];
}

/** null where the lock names packages of the source, which change without it. */
async function keyOf(files: SourceFiles, [lock = '', ...others]: string[]): Promise<Locked | null> {
  const text = (await files.read(lock, LOCK_BYTES_MAX)) ?? '';
  if (/^(?:type = "directory"|path = |directory = |\[packages\.directory\])/m.test(text)) return null;
  return { files: [lock, ...others] };
}

async function ofRequirements(files: SourceFiles, installer: Installer, file: string): Promise<Installation> {
  const found = await requirementLines(files, file);
  const key = found?.isPinned ? { files: found.files } : null;
  return plain(installer, file, `-r ${file}`, key);
}

/** The application itself is installed only if it has scripts or finds out its dependencies. */
function ofProject(installer: Installer, project: PythonProject, chosen: ChosenGroups): Installation {
  const [groups, extras] = [
    chosen.groups.map((group) => ` --group ${group}`).join(''),
    chosen.extras.map((extra) => ` --extra ${extra}`).join(''),
  ];
  const isPoetry = project.tool.poetry !== undefined && !project.isStandard;
  if (isPoetry)
    return project.isPackage
      ? itself(installer, 'pyproject.toml', chosen, '')
      : ofDependencies(installer, 'pyproject.toml', null, chosen);
  const isUv = installer.name === 'uv pip install';
  if (project.isPackage)
    return itself(installer, 'pyproject.toml', chosen, isUv ? `-r pyproject.toml${extras}${groups}` : '', groups);
  return isUv
    ? plain(installer, 'pyproject.toml', `-r pyproject.toml${extras}${groups}`, null)
    : ofDependencies(installer, 'pyproject.toml', null, chosen);
}

/**
 * @param dependencies what is installed where the application itself cannot be built; '' = what pyproject.toml states,
 * null = nothing
 */
function itself(
  installer: Installer,
  of: string,
  { extras }: ChosenGroups,
  dependencies: string | null,
  more = '',
): Installation {
  const extra = extras.length > 0 ? `[${extras.join(',')}]` : '';
  const whole = installer.install(`.${extra}${more}`);
  if (dependencies === null) return { name: installer.name, of, command: whole };
  const fallback = dependencies === '' ? ofDependencies(installer, of, null).command : installer.install(dependencies);
  return { name: installer.name, of, command: orWithoutItself(whole.replace(/ \|\| exit 1$/, ''), fallback) };
}

/** The programs print why the first failed. Where a dependency was to blame, the second fails in the same way. */
function orWithoutItself(whole: string, dependencies: string): string {
  return [
    `${whole} || {`,
    `echo 'The package of the application itself could not be installed: its dependencies alone are tried.'`,
    dependencies,
    '}',
  ].join('\n');
}

function missing(lock: string, program: string): string {
  return (
    `The source has a ${lock}, and ${program} is not installed on this platform. Ask the operator to install ` +
    `${program}, or commit a requirements.txt.`
  );
}

function plain({ name, install }: Installer, of: string, what: string, key: Locked | null): Installation {
  return { name, of, command: install(what), key };
}

/** pip knows groups since 25.1, and that of Python may be older. */
function ofGroup(installer: Installer, group: string): Installation {
  return installer.name === 'pip install'
    ? ofDependencies(installer, 'pyproject.toml', null, { groups: [group], extras: [] })
    : plain(installer, 'pyproject.toml', `--group ${group}`, null);
}

/** Installs dependencies that neither installer reads from the file itself. */
function ofDependencies(
  installer: Installer,
  of: string,
  locked: string[] | null,
  { groups, extras }: Pick<ChosenGroups, 'groups' | 'extras'> = { groups: [], extras: [] },
): Installation {
  const program = readFileSync(path.join(__dirname, 'python_dependencies.py'), 'utf8').trimEnd();
  const list = '.platform/requirements.txt';
  const chosen = [...groups.map((group) => ` group:${group}`), ...extras.map((extra) => ` extra:${extra}`)];
  const command = [
    `${environmentBin}/python -${chosen.join('')} > ${list} <<'END_OF_PROGRAM' || exit 1`,
    program,
    'END_OF_PROGRAM',
    installer.install(`-r ${list}`),
  ].join('\n');
  return { name: installer.name, of, command, key: locked && { files: locked } };
}
