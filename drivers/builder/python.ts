// Python: a virtual environment beside the files, and what starts it. Its programs are called through PATH and begin
// with `env python3`, because the files are built in one directory and run in others.
import type { DetectLanguage, LanguagePlan } from './language_plan';
import { environmentDirectory, planPackages } from './python_packages';
import { choosePython } from './python_version';
import type { SourceFiles } from './source_files';

const mainFiles = ['app.py', 'main.py'];

export const detectPython: DetectLanguage = async (files, { facts }) => {
  const requirements = await files.read('requirements.txt');
  const hasProject = requirements === null && (await files.has('pyproject.toml'));
  const main = await findMainFile(files);
  if (requirements === null && main === null && !(hasProject && (await isProject(files)))) return null;
  const python = await choosePython(files, facts);
  const wanted = (requirements ?? '')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*/, '').trim())
    .filter(Boolean);
  const packages = await planPackages(files, facts, python, { hasProject, hasRequirements: wanted.length > 0 });
  const part: LanguagePlan = {
    kind: 'python',
    summary: [`Python ${python.version}`, ...packages.summary],
    tools: [],
    steps: packages.steps,
    site: [],
    prune: null,
    processes: {},
    env: { PYTHONUNBUFFERED: '1' },
    programs: packages.steps.length ? [`${environmentDirectory}/bin`] : [],
  };
  const web = await webCommand(files, wanted, main);
  return web === null ? part : { ...part, processes: { web } };
};

/** Not only the settings of linters. */
async function isProject(files: SourceFiles): Promise<boolean> {
  for (const lock of ['uv.lock', 'poetry.lock']) if (await files.has(lock)) return true;
  const text = (await files.read('pyproject.toml')) ?? '';
  return /^\s*\[(?:project|build-system|dependency-groups|tool\.poetry)\b/m.test(text);
}

async function findMainFile(files: SourceFiles): Promise<string | null> {
  for (const name of mainFiles) if (await files.has(name)) return name;
  return null;
}

async function webCommand(files: SourceFiles, requirements: string[], main: string | null): Promise<string | null> {
  const hasGunicorn = requirements.some((line) => /^gunicorn\b/i.test(line));
  const application = hasGunicorn ? await findWsgiApplication(files, main) : null;
  if (application !== null) return `gunicorn --bind 127.0.0.1:$PORT ${application}`;
  return main && `python3 ${main}`;
}

/** The WSGI application as gunicorn names it: `app:app`, or Django's `project.wsgi`. */
async function findWsgiApplication(files: SourceFiles, main: string | null): Promise<string | null> {
  const text = main === null ? null : await files.read(main);
  const name = /^(app|application)\s*(?::[^=]*)?=[^=]/m.exec(text ?? '')?.[1];
  if (main !== null && name !== undefined) return `${main.slice(0, -'.py'.length)}:${name}`;
  if (!(await files.has('manage.py'))) return null;
  for (const directory of await files.names('.')) {
    if (/^\w+$/.test(directory) && (await files.has(`${directory}/wsgi.py`))) return `${directory}.wsgi`;
  }
  return null;
}
