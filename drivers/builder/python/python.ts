// Python: a virtual environment beside the files, and the start command. Programs are resolved through PATH and start
// with `env python3`, because files are built in one directory and run in others.
import type { DetectLanguage, LanguagePlan, Step } from '../language_plan';
import { readPackageNames, requirementLines } from './python_names';
import { environmentDirectory, planPackages } from './python_packages';
import { findPythonStart, missingPythonStart } from './python_server';
import { choosePython } from './python_version';
import type { SourceFiles } from '../source_files';

export const detectPython: DetectLanguage = async (files, host) => {
  const requirements = await requirementLines(files, 'requirements.txt');
  const hasProject = requirements === null && (await files.has('pyproject.toml'));
  const hasPipfile = requirements === null && ((await files.has('Pipfile')) || (await files.has('Pipfile.lock')));
  const names = await readPackageNames(files);
  const start = await findPythonStart(files, names);
  const isPython = requirements !== null || hasPipfile || start !== null || (hasProject && (await isProject(files)));
  if (!isPython) return null;
  const python = await choosePython(files, host);
  const packages = await planPackages(files, host, python, {
    hasRequirements: (requirements ?? []).length > 0,
    ...{ hasProject, hasPipfile, added: start?.added ?? null },
  });
  const plan: LanguagePlan = {
    kind: 'python',
    summary: [`Python ${python.version}`, ...packages.summary],
    reasons: [python.reason],
    tools: [...python.tools, ...packages.tools],
    steps: [...packages.steps, ...(await staticFiles(files))],
    site: [],
    prune: null,
    processes: start === null ? {} : { web: start.command },
    missing: start === null ? missingPythonStart(names) : null,
    env: { PYTHONUNBUFFERED: '1' },
    programs: [`${environmentDirectory}/bin`],
    notes: [python.note, start?.note ?? null].filter((note) => note !== null),
  };
  return plan;
};

/** A project, not only settings of linters. */
async function isProject(files: SourceFiles): Promise<boolean> {
  for (const lock of ['uv.lock', 'poetry.lock']) if (await files.has(lock)) return true;
  const text = (await files.read('pyproject.toml')) ?? '';
  return /^\s*\[(?:project|build-system|dependency-groups|tool\.poetry)\b/m.test(text);
}

/** Django: collects static files into STATIC_ROOT, if the settings define it. */
async function staticFiles(files: SourceFiles): Promise<Step[]> {
  if (!(await files.has('manage.py'))) return [];
  const python = `PATH="$PWD/${environmentDirectory}/bin:$PATH" python3 manage.py`;
  // Many settings define STATIC_ROOT in production only. `diffsettings` shows the effective value; if it fails, the
  // next command fails too and reports why.
  const command = [
    `case "\${DISABLE_COLLECTSTATIC:-0}" in 0 | false | '') ;; *) echo 'DISABLE_COLLECTSTATIC is set.'; exit 0 ;; esac`,
    `grep -rqsE '^ *STATIC_ROOT *=' --include='*.py' --exclude-dir=.platform . || exit 0`,
    `case $(${python} diffsettings --all 2>/dev/null | sed -n 's/^#* *STATIC_ROOT = //p') in None | "''")`,
    `echo 'The settings of Django have no STATIC_ROOT here: no static files are collected.'; exit 0 ;; esac`,
    `${python} collectstatic --noinput || {`,
    `echo 'Set the variable DISABLE_COLLECTSTATIC=1 to build without collectstatic.' >&2; exit 1; }`,
  ].join('\n');
  return [{ name: 'collectstatic', command }];
}
