// Python: a virtual environment beside the files, and what starts it. Its programs are called through PATH and begin
// with `env python3`, because the files are built in one directory and run in others.
import { BuildError } from '../builder';
import type { DetectLanguage, LanguagePlan, Step } from './language_plan';
import type { SourceFiles } from './source_files';

const environmentDirectory = '.platform/venv';
const mainFiles = ['app.py', 'main.py'];

export const detectPython: DetectLanguage = async (files, { facts }) => {
  const requirements = await files.read('requirements.txt');
  const hasProject = requirements === null && (await files.has('pyproject.toml'));
  const main = await findMainFile(files);
  if (requirements === null && !hasProject && main === null) return null;
  if (!facts.programs.python3)
    throw new BuildError(
      'The source needs Python, which is not installed on this platform. Ask the operator to install python3.',
    );
  const wanted = (requirements ?? '')
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*/, '').trim())
    .filter(Boolean);
  const steps = hasProject ? installSteps('.') : wanted.length ? installSteps('-r requirements.txt') : [];
  const part: LanguagePlan = {
    kind: 'python',
    summary: [
      `Python ${facts.programs.python3.version}`,
      ...(steps.length ? [`pip install ${hasProject ? 'of pyproject.toml' : 'of requirements.txt'}`] : []),
    ],
    tools: [],
    steps,
    site: [],
    prune: null,
    processes: {},
    env: { PYTHONUNBUFFERED: '1' },
    programs: steps.length ? [`${environmentDirectory}/bin`] : [],
  };
  const web = await webCommand(files, wanted, main);
  return web === null ? part : { ...part, processes: { web } };
};

async function findMainFile(files: SourceFiles): Promise<string | null> {
  for (const name of mainFiles) if (await files.has(name)) return name;
  return null;
}

function installSteps(what: string): Step[] {
  const python = `${environmentDirectory}/bin/python`;
  return [
    { name: 'Python environment', command: `python3 -m venv ${environmentDirectory}` },
    { name: 'pip install', command: `${python} -m pip install ${what} && ${relocate}` },
  ];
}

const relocate = [
  `for file in ${environmentDirectory}/bin/*; do`,
  'if [ -f "$file" ] && [ ! -L "$file" ] && head -n 1 "$file" | grep -q "^#!.*/.platform/venv/bin/python"; then',
  'sed "1s|.*|#!/usr/bin/env python3|" "$file" > "$file.new" && cat "$file.new" > "$file" && rm "$file.new";',
  'fi; done',
].join(' ');

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
