// Installs packages of a Python source: by uv from requirements.txt, its lock file or pyproject.toml, by pip without
// uv, by poetry from its lock file. All use one virtual environment beside the files.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { BuildError } from '../../builder';
import type { Tool } from '../../toolchain';
import type { BuildHost, Step } from '../language_plan';
import { chooseUv, type Python } from './python_version';
import type { SourceFiles } from '../source_files';
import { findUvProject, type UvProject } from './uv_project';

export const environmentDirectory = '.platform/venv';
const bin = `${environmentDirectory}/bin`;

interface Packages {
  /** Name of the installer, for the summary of the plan. */
  summary: string[];
  tools: Tool[];
  steps: Step[];
}

/** The default installer without a lock file: uv, or the pip of the environment. */
interface Installer {
  name: 'uv pip install' | 'pip install';
  /** Start of the command. */
  command: string;
  tools: Tool[];
}

interface Stated {
  hasRequirements: boolean;
  hasProject: boolean;
  hasPipfile: boolean;
  /** An additional package that the source does not state. */
  added: string | null;
}

/** @throws BuildError for a lock file whose program is unavailable */
export async function planPackages(
  files: SourceFiles,
  host: BuildHost,
  python: Python,
  { hasRequirements, hasProject, hasPipfile, added }: Stated,
): Promise<Packages> {
  const isEmpty = !hasRequirements && !hasProject && !hasPipfile && added === null;
  // No packages. The virtual environment hides the packages of the host.
  if (isEmpty) return { summary: [], tools: [], steps: [environment(python, ' --without-pip')] };
  const uv = await chooseUv(host);
  const project = hasProject ? await findUvProject(files) : null;
  if (project !== null) {
    if (uv === null) throw new BuildError(missing(project.lock ?? 'pyproject.toml with settings of uv', 'uv'));
    return ofUvProject(project, python, uvInstaller(uv.tools), added);
  }
  if (hasProject && (await files.has('poetry.lock'))) {
    if (!host.facts.programs.poetry) throw new BuildError(missing('poetry.lock', 'poetry'));
    const step = { name: 'poetry install', command: poetryInstall };
    return installed('poetry install of poetry.lock', python, pipInstaller, step, added);
  }
  if (hasProject) await requireNoOtherIndexes(files);
  const installer = uv === null ? pipInstaller : uvInstaller(uv.tools);
  const install = (file: string, step: Step): Packages =>
    installed(`${installer.name} of ${file}`, python, installer, step);
  if (hasRequirements) return install('requirements.txt', installStep(installer, '-r requirements.txt', added));
  if (hasPipfile) {
    const file = (await files.has('Pipfile.lock')) ? 'Pipfile.lock' : 'Pipfile';
    return install(file, ofDependencies(installer, added));
  }
  if (!hasProject) return install(added!, installStep(installer, added!, null));
  const isItself = await isPackage(files);
  return install('pyproject.toml', isItself ? installStep(installer, '.', added) : ofDependencies(installer, added));
}

/** pip and uv know nothing of indexes that are stated for others. @throws BuildError */
async function requireNoOtherIndexes(files: SourceFiles): Promise<void> {
  const text = (await files.read('pyproject.toml')) ?? '';
  const [, tool, table] = /^[ \t]*\[\[tool\.(poetry|pdm|rye)\.(sources?)\]\]/m.exec(text) ?? [];
  if (tool === undefined) return;
  const lock = tool === 'poetry' ? 'poetry.lock' : 'uv.lock';
  throw new BuildError(
    `pyproject.toml names indexes of packages for ${tool} (tool.${tool}.${table}), which this platform cannot pass ` +
      `on: a private package could come from the public index. Commit ${lock}, ` +
      'or a requirements.txt with the index and the versions.',
  );
}

/** The application itself is installed only if it has scripts or dynamic dependencies. */
async function isPackage(files: SourceFiles): Promise<boolean> {
  const text = (await files.read('pyproject.toml')) ?? '';
  const needsItself = /^\s*\[(?:project|tool\.poetry)\.(?:gui-)?scripts\]|^\s*dynamic\s*=\s*\[[^\]]*dependencies/m;
  return needsItself.test(text) && /^\s*\[build-system\]/m.test(text);
}

// Both install into the existing environment, without development dependencies.
const poetryInstall =
  `VIRTUAL_ENV="$PWD/${environmentDirectory}" PATH="$PWD/${bin}:$PATH" ` +
  'poetry install --only main --no-interaction --no-ansi';

/** In a workspace uv would take a relative path from its top, and link to sources that do not move with the build. */
function ofUvProject({ lock }: UvProject, python: Python, installer: Installer, added: string | null): Packages {
  const isAbove = lock !== 'uv.lock';
  const options = [...(lock === null ? [] : ['--frozen']), ...(isAbove ? ['--no-editable'] : [])];
  const command =
    `UV_PROJECT_ENVIRONMENT="$PWD/${environmentDirectory}" UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy ` +
    ['uv sync', ...options, '--no-dev', `--python ${bin}/python`].join(' ');
  const summary = `uv install of ${lock ?? 'pyproject.toml'}`;
  return installed(summary, python, installer, { name: 'uv install', command }, added);
}

function missing(lock: string, program: string): string {
  return (
    `The source has a ${lock}, and ${program} is not installed on this platform. Ask the operator to install ` +
    `${program}, or commit a requirements.txt.`
  );
}

function installed(
  summary: string,
  python: Python,
  installer: Installer,
  step: Step,
  added: string | null = null,
): Packages {
  const more = added === null ? '' : ` && ${installStep(installer, added, null).command}`;
  return {
    summary: [summary],
    tools: installer.tools,
    steps: [environment(python), { ...step, command: `${step.command}${more} && ${relocate}` }],
  };
}

function environment({ program }: Python, options = ''): Step {
  return { name: 'Python environment', command: `${program} -m venv${options} ${environmentDirectory}` };
}

const pipInstaller: Installer = { name: 'pip install', command: `${bin}/python -m pip install`, tools: [] };

function uvInstaller(tools: Tool[]): Installer {
  return { name: 'uv pip install', command: `${uvSettings}uv pip install --python ${bin}/python`, tools };
}

/**
 * Translates pip's index variables for uv, which uses other names (https://docs.astral.sh/uv/pip/ compatibility/). pip
 * selects the best version of all indexes; uv uses the first index, unless configured otherwise.
 */
const uvSettings = [
  ['UV_DEFAULT_INDEX', '${UV_INDEX_URL:-${PIP_INDEX_URL:-}}'],
  ['UV_INDEX', '${UV_EXTRA_INDEX_URL:-${PIP_EXTRA_INDEX_URL:-}}'],
  ['UV_FIND_LINKS', '$(printf %s "${PIP_FIND_LINKS:-}" | tr " " ,)'],
  ['UV_INSECURE_HOST', '${PIP_TRUSTED_HOST:-}'],
  ['UV_CONSTRAINT', '${PIP_CONSTRAINT:-}'],
  ['UV_NO_INDEX', '${PIP_NO_INDEX:-}'],
  ['SSL_CERT_FILE', '${PIP_CERT:-}'],
  ['UV_INDEX_STRATEGY', 'unsafe-best-match'],
  ['UV_LINK_MODE', 'copy'],
  ['UV_PYTHON_DOWNLOADS', 'never'],
]
  .map(([name, value]) => `: "\${${name}:=${value}}"; [ -z "$${name}" ] || export ${name}; `)
  .join('');

function installStep({ name, command }: Installer, what: string, added: string | null): Step {
  return { name, command: `${command} ${added === null ? what : `${what} ${added}`}` };
}

/** Installs dependencies that neither installer reads from the file itself. */
function ofDependencies(installer: Installer, added: string | null): Step {
  const program = readFileSync(path.join(__dirname, 'python_dependencies.py'), 'utf8').trimEnd();
  const list = '.platform/requirements.txt';
  const command = [
    `${bin}/python - > ${list} <<'END_OF_PROGRAM' || exit 1`,
    program,
    'END_OF_PROGRAM',
    installStep(installer, `-r ${list}`, added).command,
  ].join('\n');
  return { name: installer.name, command };
}

const relocate = [
  `for file in ${bin}/*; do`,
  'if [ -f "$file" ] && [ ! -L "$file" ] && head -n 1 "$file" | grep -q "^#!.*/.platform/venv/bin/python"; then',
  'sed "1s|.*|#!/usr/bin/env python3|" "$file" > "$file.new" && cat "$file.new" > "$file" && rm "$file.new";',
  'fi; done',
].join(' ');
