// How the packages of a Python source are installed: by pip from requirements.txt, by uv or poetry from their lock
// files, by pip from pyproject.toml. All of them into one virtual environment beside the files.
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

/** @throws BuildError for a lock file whose program the host has not */
export async function planPackages(
  files: SourceFiles,
  { programs }: HostFacts,
  python: Python,
  { hasProject, hasRequirements }: { hasProject: boolean; hasRequirements: boolean },
): Promise<Packages> {
  if (hasRequirements) return installed('pip install of requirements.txt', python, pip('-r requirements.txt'));
  if (!hasProject)
    // Nothing to install; the environment makes the chosen one `python3`.
    return { summary: [], steps: python.isChosen ? [environment(python)] : [] };
  for (const { lock, program, command } of locked) {
    if (!(await files.has(lock))) continue;
    if (!programs[program]) throw new BuildError(missing(lock, program));
    return installed(`${program} install of ${lock}`, python, { name: `${program} install`, command });
  }
  return installed('pip install of pyproject.toml', python, pip('.'));
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

function installed(summary: string, python: Python, step: Step): Packages {
  return { summary: [summary], steps: [environment(python), { ...step, command: `${step.command} && ${relocate}` }] };
}

function environment({ program }: Python): Step {
  return { name: 'Python environment', command: `${program} -m venv ${environmentDirectory}` };
}

function pip(what: string): Step {
  return { name: 'pip install', command: `${bin}/python -m pip install ${what}` };
}

const relocate = [
  `for file in ${bin}/*; do`,
  'if [ -f "$file" ] && [ ! -L "$file" ] && head -n 1 "$file" | grep -q "^#!.*/.platform/venv/bin/python"; then',
  'sed "1s|.*|#!/usr/bin/env python3|" "$file" > "$file.new" && cat "$file.new" > "$file" && rm "$file.new";',
  'fi; done',
].join(' ');
