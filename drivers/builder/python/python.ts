// Python: a virtual environment beside the files, and the start command. Programs are resolved through PATH and start
// with `env python3`, because files are built in one directory and run in others.
import type { DetectLanguage, LanguagePlan, Step } from '../language_plan';
import { findBelow, inDirectory, type ProgramPlace } from './django_below';
import { chooseGroups } from './python_groups';
import { readPackageNames, type PackageNames } from './python_names';
import { environmentDirectory, planPackages } from './python_packages';
import { readProject } from './python_project';
import { findPythonStart, missingPythonStart } from './python_server';
import { findStatement, otherStatements, requireReadable } from './python_statement';
import { choosePython } from './python_version';

interface Start {
  start: NonNullable<Awaited<ReturnType<typeof findPythonStart>>>;
  /** Where it runs, from the root directory. */
  directory: string;
}

export const detectPython: DetectLanguage = async (files, host) => {
  const project = await readProject(files);
  const statement = await findStatement(files, project);
  const names = await readPackageNames(files, statement, project);
  const below = await findBelow(files, names.all);
  const { start, directory } =
    (await findStart(below, names)) ?? (await findStart({ files, directory: '.' }, names)) ?? none;
  if (statement.kind === 'none') await requireReadable(files, project, start !== null);
  if (statement.kind === 'none' && start === null && !(await files.has('requirements.txt'))) return null;
  const python = await choosePython(files, host);
  const started = (await files.read('Procfile')) ?? start?.command ?? '';
  const chosen = chooseGroups(project, statement, names.main, [started, ...Object.values(host.commands)]);
  const packages = await planPackages(files, host, python, { statement, project, chosen, added: start?.added ?? null });
  const notes = [python.note, await otherStatements(files, statement), ...chosen.notes, start?.note ?? null];
  const plan: LanguagePlan = {
    kind: 'python',
    summary: [`Python ${python.version}`, ...packages.summary],
    reasons: [python.reason],
    tools: [...python.tools, ...packages.tools],
    steps: [...packages.steps, ...(await staticFiles(below))],
    site: [],
    prune: null,
    processes: start === null ? {} : { web: inDirectory(directory, start.command) },
    missing: start === null ? missingPythonStart(names.main) : null,
    env: { PYTHONUNBUFFERED: '1' },
    programs: [`${environmentDirectory}/bin`],
    notes: notes.filter((note) => note !== null),
  };
  return plan;
};

const none = { start: null, directory: '.' };

/** A server among optional packages is better than one that nobody chose. */
async function findStart({ files, directory }: ProgramPlace, names: PackageNames): Promise<Start | null> {
  const first = await findPythonStart(files, names.main);
  const isChosen = first !== null && first.added === null && first.note === null;
  const start = isChosen ? first : ((await findPythonStart(files, names.all)) ?? first);
  return start && { start, directory };
}

/** Django: collects static files into STATIC_ROOT, if the settings define it. */
async function staticFiles({ files, directory }: ProgramPlace): Promise<Step[]> {
  if (!(await files.has('manage.py'))) return [];
  const python = `PATH="$OLDPWD/${environmentDirectory}/bin:$PATH" python3 manage.py`;
  // Many settings define STATIC_ROOT in production only. `diffsettings` shows the effective value; if it fails, the
  // next command fails too and reports why.
  const command = [
    `case "\${DISABLE_COLLECTSTATIC:-0}" in 0 | false | '') ;; *) echo 'DISABLE_COLLECTSTATIC is set.'; exit 0 ;; esac`,
    `cd ${directory} || exit 1`,
    `grep -rqsE '^ *STATIC_ROOT *=' --include='*.py' --exclude-dir=.platform . || exit 0`,
    `case $(${python} diffsettings --all 2>/dev/null | sed -n 's/^#* *STATIC_ROOT = //p') in None | "''")`,
    `echo 'The settings of Django have no STATIC_ROOT here: no static files are collected.'; exit 0 ;; esac`,
    `${python} collectstatic --noinput || {`,
    `echo 'Set the variable DISABLE_COLLECTSTATIC=1 to build without collectstatic.' >&2; exit 1; }`,
  ].join('\n');
  return [{ name: 'collectstatic', command }];
}
