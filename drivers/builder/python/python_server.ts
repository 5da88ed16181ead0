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
}

const scripts = ['app.py', 'main.py'];
const modules = [
  'app.py',
  'main.py',
  'asgi.py',
  'wsgi.py',
  'application.py',
  'app/main.py',
  'src/main.py',
  'api/main.py',
];
const asyncFrameworks = /\b(?:FastAPI|Starlette|Quart|Litestar|get_asgi_application|ASGIApp|BlackSheep)\s*\(/;
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
  if (django !== null) return { command: django, added: null, note: null };
  const script = await firstFile(files, scripts);
  const application = await findApplication(files);
  if (application === null) return script === null ? null : plainStart(files, script, packages);
  const command = commandOf(application.isAsync ? asyncServers : servers, application.target, packages);
  if (command !== null) return { command, added: null, note: null };
  // It does not open a port by itself.
  if (application.isAsync) return withUvicorn(application.target);
  return script === null ? null : plainStart(files, script, packages);
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

function withUvicorn(target: string): PythonStart {
  const note =
    'The source names no server for its application, so uvicorn was added to its packages. ' +
    'Add uvicorn to the packages to choose its version.';
  return { command: commandOf(asyncServers, target, new Set(['uvicorn']))!, added: 'uvicorn', note };
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
    const isAsync = asyncFrameworks.test(text) || /^\s*(?:from|import)\s+(?:fastapi|starlette|quart)\b/m.test(text);
    return { target: `${file.slice(0, -'.py'.length).replaceAll('/', '.')}:${name}`, isAsync };
  }
  return null;
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

async function djangoStart(files: SourceFiles, packages: Set<string>): Promise<string | null> {
  if (!(await files.has('manage.py'))) return null;
  for (const directory of await files.names('.')) {
    if (!/^\w+$/.test(directory)) continue;
    const sync = (await files.has(`${directory}/wsgi.py`)) ? commandOf(servers, `${directory}.wsgi`, packages) : null;
    if (sync !== null) return sync;
    if (!(await files.has(`${directory}/asgi.py`))) continue;
    const found = commandOf(asyncServers, `${directory}.asgi:application`, packages);
    if (found !== null) return found;
  }
  return null;
}

async function firstFile(files: SourceFiles, names: string[]): Promise<string | null> {
  for (const name of names) if (await files.has(name)) return name;
  return null;
}
