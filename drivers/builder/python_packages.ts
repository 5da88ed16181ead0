// How the packages of a Python source are installed: by pip from requirements.txt, by uv or poetry from their lock
// files, by pip from pyproject.toml. All of them into one virtual environment beside the files.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { HostFacts } from '../../core/host_facts';
import { BuildError } from '../builder';
import type { Step } from './language_plan';
import type { Python } from './python_version';
import type { SourceFiles } from './source_files';

export const environmentDirectory = '.platform/venv';
const bin = `${environmentDirectory}/bin`;

interface Packages {
  /** What installs them, for the summary of the plan. */
  summary: string[];
  steps: Step[];
}

interface Stated {
  hasRequirements: boolean;
  hasProject: boolean;
  hasPipfile: boolean;
  /** A package beside those that the source names. */
  added: string | null;
}

/** @throws BuildError for a lock file whose program the host has not */
export async function planPackages(
  files: SourceFiles,
  { programs }: HostFacts,
  python: Python,
  { hasRequirements, hasProject, hasPipfile, added }: Stated,
): Promise<Packages> {
  const install = (file: string, what: string): Packages =>
    installed(`pip install of ${file}`, python, pip(what, added));
  if (hasRequirements) return install('requirements.txt', '-r requirements.txt');
  const lock = hasProject ? await lockOf(files) : null;
  if (lock !== null) {
    if (!programs[lock.program]) throw new BuildError(missing(lock.lock, lock.program));
    const name = `${lock.program} install`;
    return installed(`${name} of ${lock.lock}`, python, { name, command: lock.command }, added);
  }
  if (hasPipfile) {
    const file = (await files.has('Pipfile.lock')) ? 'Pipfile.lock' : 'Pipfile';
    return installed(`pip install of ${file}`, python, ofDependencies(added));
  }
  if (hasProject)
    return installed(
      'pip install of pyproject.toml',
      python,
      (await isPackage(files)) ? pip('.', added) : ofDependencies(added),
    );
  if (added !== null) return installed(`pip install of ${added}`, python, pip(added, null));
  // Nothing to install. In an environment of its own it sees none of the packages of the host.
  return { summary: [], steps: [environment(python, ' --without-pip')] };
}

async function lockOf(files: SourceFiles): Promise<(typeof locked)[number] | null> {
  for (const one of locked) if (await files.has(one.lock)) return one;
  return null;
}

/** An application is not installed itself, unless it says that it has programs, or how to find out what it needs. */
async function isPackage(files: SourceFiles): Promise<boolean> {
  const text = (await files.read('pyproject.toml')) ?? '';
  const needsItself = /^\s*\[(?:project|tool\.poetry)\.(?:gui-)?scripts\]|^\s*dynamic\s*=\s*\[[^\]]*dependencies/m;
  return needsItself.test(text) && /^\s*\[build-system\]/m.test(text);
}

// Both install into the environment that is there, and leave out what only development needs.
const locked = [
  {
    lock: 'uv.lock',
    program: 'uv' as const,
    command:
      `UV_PROJECT_ENVIRONMENT=${environmentDirectory} UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy ` +
      `uv sync --frozen --no-dev --python ${bin}/python`,
  },
  {
    lock: 'poetry.lock',
    program: 'poetry' as const,
    command:
      `VIRTUAL_ENV="$PWD/${environmentDirectory}" PATH="$PWD/${bin}:$PATH" ` +
      'poetry install --only main --no-interaction --no-ansi',
  },
];

function missing(lock: string, program: string): string {
  return (
    `The source has a ${lock}, and ${program} is not installed on this platform. Ask the operator to install ` +
    `${program}, or commit a requirements.txt.`
  );
}

function installed(summary: string, python: Python, step: Step, added: string | null = null): Packages {
  const more = added === null ? '' : ` && ${bin}/python -m pip install ${added}`;
  return {
    summary: [summary],
    steps: [environment(python), { ...step, command: `${step.command}${more} && ${relocate}` }],
  };
}

function environment({ program }: Python, options = ''): Step {
  return { name: 'Python environment', command: `${program} -m venv${options} ${environmentDirectory}` };
}

function pip(what: string, added: string | null): Step {
  const all = added === null ? what : `${what} ${added}`;
  return { name: 'pip install', command: `${bin}/python -m pip install ${all}` };
}

/** What a file names that pip does not read by itself. */
function ofDependencies(added: string | null): Step {
  const program = readFileSync(path.join(__dirname, 'python_dependencies.py'), 'utf8').trimEnd();
  const list = '.platform/requirements.txt';
  const command = [
    `${bin}/python - > ${list} <<'END_OF_PROGRAM' || exit 1`,
    program,
    'END_OF_PROGRAM',
    pip(`-r ${list}`, added).command,
  ].join('\n');
  return { name: 'pip install', command };
}

const relocate = [
  `for file in ${bin}/*; do`,
  'if [ -f "$file" ] && [ ! -L "$file" ] && head -n 1 "$file" | grep -q "^#!.*/.platform/venv/bin/python"; then',
  'sed "1s|.*|#!/usr/bin/env python3|" "$file" > "$file.new" && cat "$file.new" > "$file" && rm "$file.new";',
  'fi; done',
].join(' ');
