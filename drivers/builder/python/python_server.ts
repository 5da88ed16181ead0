// The server of a Python application: one among its packages that supports its interface.
import { LISTEN } from '../listen';
import type { SourceFiles } from '../source_files';

interface PythonStart {
  command: string;
  /** A required package that the source does not state. */
  added: string | null;
  /** Note for the owner. */
  note: string | null;
}

interface Application {
  /** `main:app`. */
  target: string;
  isAsync: boolean;
  /** Its framework is known to need a server. */
  needsServer: boolean;
  /** A function makes it, which only the first of the servers calls. */
  isFactory?: boolean;
}

const scripts = ['app.py', 'main.py', 'server.py', 'run.py'];
const modules = [
  ...['app.py', 'main.py', 'asgi.py', 'wsgi.py', 'application.py', 'server.py', 'run.py', 'index.py'],
  ...['app/main.py', 'src/main.py', 'api/main.py', 'app/app.py', 'src/app.py', 'api/app.py', 'api/index.py'],
];
const asyncFrameworks = /\b(?:FastAPI|Starlette|Quart|Litestar|get_asgi_application|ASGIApp|BlackSheep)\s*\(/;
/** WSGI frameworks without a server of their own, or with one for development alone. */
const syncFrameworks = /\b(?:Flask|Bottle|Dash|Pyramid|Configurator|falcon\.App|connexion\.App)\s*\(/;
/** Applications that need the server that they start themselves. */
const ownServers = /\bSocketIO\s*\(/;
const developmentServer = /\b(?:Flask|Bottle|Dash|make_server|simple_server)\b/;

const asyncServers: [name: string, command: (target: string) => string][] = [
  ['uvicorn', (target) => `uvicorn --host ${LISTEN} --port $PORT ${target}`],
  ['hypercorn', (target) => `hypercorn --bind ${LISTEN}:$PORT ${target}`],
  ['daphne', (target) => `daphne -b ${LISTEN} -p $PORT ${target}`],
  ['granian', (target) => `granian --interface asgi --host ${LISTEN} --port $PORT ${target}`],
];
const servers: typeof asyncServers = [
  ['gunicorn', (target) => `gunicorn --bind ${LISTEN}:$PORT ${target}`],
  ['waitress', (target) => `waitress-serve --listen=${LISTEN}:$PORT ${target}`],
  ['granian', (target) => `granian --interface wsgi --host ${LISTEN} --port $PORT ${target}`],
];

/** null where no start command was found. */
export async function findPythonStart(files: SourceFiles, packages: Set<string>): Promise<PythonStart | null> {
  const django = await djangoStart(files, packages);
  if (django !== null) return django;
  const script = await firstFile(files, scripts);
  const application = (await findApplication(files)) ?? (await findFactory(files));
  if (application === null) return script === null ? null : plainStart(files, script, packages);
  const sync = application.isFactory ? servers.slice(0, 1) : servers;
  const command = commandOf(application.isAsync ? asyncServers : sync, application.target, packages);
  if (command !== null) return { command, added: null, note: null };
  // It does not open a port by itself.
  if (application.isAsync) return withServer('uvicorn', asyncServers, application.target);
  if (application.needsServer) return withServer('gunicorn', servers, application.target);
  return script === null ? null : plainStart(files, script, packages);
}

const frameworks = {
  ...{ django: 'Django', flask: 'Flask', fastapi: 'FastAPI', starlette: 'Starlette', litestar: 'Litestar' },
  ...{ quart: 'Quart', bottle: 'Bottle', dash: 'Dash', pyramid: 'Pyramid', falcon: 'Falcon', tornado: 'Tornado' },
  ...{ aiohttp: 'aiohttp', sanic: 'Sanic', streamlit: 'Streamlit', gradio: 'Gradio', celery: 'Celery' },
  ...{ mkdocs: 'MkDocs', sphinx: 'Sphinx', pelican: 'Pelican' },
};
const generators: Record<string, [command: string, output: string]> = {
  MkDocs: ['mkdocs build', 'site'],
  Sphinx: ['sphinx-build docs public', 'public'],
  Pelican: ['pelican content', 'output'],
};

/** What is missing where no start command was found: a sentence. */
export function missingPythonStart(packages: Set<string>): string {
  const title = Object.entries(frameworks).find(([name]) => packages.has(name))?.[1];
  const what = `The source is a Python project${title === undefined ? '' : ` with ${title}`}`;
  const generator = generators[title ?? ''];
  if (generator !== undefined)
    return (
      `${what}, which makes a site. Set build.build_command to one that installs it in an environment of its own ` +
      `and runs \`${generator[0]}\`, and build.output_directory to \`${generator[1]}\`.`
    );
  const line =
    title === 'Django'
      ? 'gunicorn <project>.wsgi'
      : title === undefined || ['Streamlit', 'Gradio', 'Celery', 'Tornado', 'aiohttp'].includes(title)
        ? 'python3 <file>.py'
        : 'gunicorn <module>:app';
  const where = title === 'Django' ? 'a manage.py with a wsgi.py beside it' : `an application in ${scripts.join(', ')}`;
  return `${what} without a server: ${where} was not found. Add a Procfile with a line like \`web: ${line}\`.`;
}

/** Note for a Procfile command that starts a development server; null for others. */
export function developmentNote(command: string): string | null {
  const server = /\b(?:manage\.py\s+runserver|flask\b.*\brun|fastapi\s+dev|uvicorn\b.*\s--reload)\b/.exec(command)?.[0];
  if (server === undefined) return null;
  return (
    `\`${server}\` is a server for development: slow, and open to whoever finds its debugger. ` +
    'Start gunicorn or uvicorn instead.'
  );
}

function withServer(name: 'uvicorn' | 'gunicorn', known: typeof servers, target: string): PythonStart {
  const note =
    `The source names no server for its application, so ${name} was added to its packages. ` +
    `Add ${name} to the packages to choose its version.`;
  return { command: commandOf(known, target, new Set([name]))!, added: name, note };
}

async function plainStart(files: SourceFiles, script: string, packages: Set<string>): Promise<PythonStart> {
  const command = `python3 ${script}`;
  const text = (await files.read(script)) ?? '';
  const isOwn = developmentServer.test(text) && !servers.some(([name]) => packages.has(name) && text.includes(name));
  const note =
    `\`${command}\` starts the server for development of the framework: it answers few requests at a time. ` +
    'Add gunicorn to the packages, or a Procfile.';
  return { command, added: null, note: isOwn ? note : null };
}

function commandOf(known: typeof servers, target: string, packages: Set<string>): string | null {
  return known.find(([name]) => packages.has(name))?.[1](target) ?? null;
}

async function findApplication(files: SourceFiles): Promise<Application | null> {
  for (const file of modules) {
    const text = (await files.read(file)) ?? '';
    const name = applicationNameIn(text);
    if (name === null) continue;
    const isAsync =
      asyncFrameworks.test(text) || /^[ \t]*(?:from|import)[ \t]+(?:fastapi|starlette|quart)\b/m.test(text);
    return { target: `${moduleOf(file)}:${name}`, isAsync, needsServer: needsServer(text) };
  }
  return null;
}

/** A function that makes the application, as in the tutorial of Flask: gunicorn alone calls it. */
async function findFactory(files: SourceFiles): Promise<Application | null> {
  const packages = (await files.names('.')).filter((name) => /^[a-z]\w*$/i.test(name) && name !== 'tests');
  for (const file of [...modules, ...packages.map((name) => `${name}/__init__.py`)]) {
    const text = (await files.read(file)) ?? '';
    if (!/^def create_app\(/m.test(text) || !needsServer(text)) continue;
    return { target: `'${moduleOf(file)}:create_app()'`, isAsync: false, needsServer: true, isFactory: true };
  }
  return null;
}

function needsServer(text: string): boolean {
  return syncFrameworks.test(text) && !ownServers.test(text);
}

function moduleOf(file: string): string {
  return file.replace(/(?:\/__init__)?\.py$/, '').replaceAll('/', '.');
}

function applicationNameIn(text: string): string | null {
  // Dash exports its WSGI application under this name.
  if (/^server\s*=\s*app\.server\b/m.test(text)) return 'server';
  const usual = /^(app|application)\s*(?::[^=\n]*)?=[^=]/m.exec(text)?.[1];
  return (
    usual ??
    /^(api|server)\s*(?::[^=\n]*)?=\s*(?:\w+\.)?(?:FastAPI|Starlette|Quart|Litestar)\(/m.exec(text)?.[1] ??
    null
  );
}

async function djangoStart(files: SourceFiles, packages: Set<string>): Promise<PythonStart | null> {
  if (!(await files.has('manage.py'))) return null;
  let without: PythonStart | null = null;
  for (const directory of await files.names('.')) {
    if (!/^\w+$/.test(directory)) continue;
    const hasWsgi = await files.has(`${directory}/wsgi.py`);
    const sync = hasWsgi ? commandOf(servers, `${directory}.wsgi`, packages) : null;
    if (sync !== null) return { command: sync, added: null, note: null };
    if (hasWsgi) without ??= withServer('gunicorn', servers, `${directory}.wsgi`);
    if (!(await files.has(`${directory}/asgi.py`))) continue;
    const target = `${directory}.asgi:application`;
    const found = commandOf(asyncServers, target, packages);
    if (found !== null) return { command: found, added: null, note: null };
    without ??= withServer('uvicorn', asyncServers, target);
  }
  return without;
}

async function firstFile(files: SourceFiles, names: string[]): Promise<string | null> {
  for (const name of names) if (await files.has(name)) return name;
  return null;
}
