/** @user any */
// What starts a Python source, and which packages it gets, wherever it names them.
import { commands, detect, facts, setUpPlans } from '../../support/deployments/plans';

setUpPlans();

const wsgi = { 'app.py': 'from flask import Flask\napp = Flask(__name__)\n' };
const asgi = { 'main.py': 'from fastapi import FastAPI\n\napp = FastAPI()\n' };
const gunicorn = 'gunicorn --bind ${SVC_LISTEN_ADDRESS:-127.0.0.1}:$PORT app:app';
const uvicorn = 'uvicorn --host ${SVC_LISTEN_ADDRESS:-127.0.0.1} --port $PORT main:app';
const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');
const bigEndian = (text: string): Buffer => utf16(text).swap16();

describe('the server of the application', () => {
  test.each([
    [{ 'requirements.txt': 'flask\nGunicorn==23.0 ; python_version > "3"\n' }],
    [
      {
        'requirements.txt': '-r deploy/base.txt\nflask\n',
        'deploy/base.txt': '-r more.txt',
        'deploy/more.txt': 'gunicorn',
      },
    ],
    [{ 'requirements.txt': '--requirement=other.txt', 'other.txt': '-r requirements.txt\ngunicorn[gevent]>=20' }],
    [{ 'requirements.txt': utf16('flask\r\ngunicorn==23.0\r\n') }],
    [{ 'requirements.txt': bigEndian('flask\ngunicorn\n') }],
    [{ 'pyproject.toml': '[project]\nname = "x"\ndependencies = [\n  "flask[async]>=3",\n  \'gunicorn\',\n]\n' }],
    [{ 'pyproject.toml': '[tool.poetry.dependencies]\npython = "^3.11"\ngunicorn = "^23.0"\n' }],
    [{ Pipfile: '[packages]\nflask = "*"\ngunicorn = "*"\n' }],
    [{ Pipfile: '', 'Pipfile.lock': '{"default": {"gunicorn": {"version": "==23.0.0"}}}' }],
  ])('gunicorn of %j', async (files) => {
    expect((await detect({ ...wsgi, ...files })).processes.web).toBe(gunicorn);
  });

  test('gunicorn of a lock file of uv or poetry', async () => {
    const found = (name: string) => ({ version: '1.0', path: `/usr/bin/${name}` });

    const host = { ...facts, programs: { ...facts.programs, uv: found('uv'), poetry: found('poetry') } };
    for (const lock of ['uv.lock', 'poetry.lock']) {
      const files = {
        ...wsgi,
        'pyproject.toml': '[project]\nname = "x"\n',
        [lock]: '[[package]]\nname = "gunicorn"\n',
      };
      expect((await detect(files, {}, host)).processes.web).toBe(gunicorn);
    }
  });

  test.each([
    ['fastapi[standard]', uvicorn],
    ['fastapi[all]', uvicorn],
    ['fastapi\nuvicorn[standard]', uvicorn],
    ['fastapi\nhypercorn', 'hypercorn --bind ${SVC_LISTEN_ADDRESS:-127.0.0.1}:$PORT main:app'],
    ['fastapi\ndaphne', 'daphne -b ${SVC_LISTEN_ADDRESS:-127.0.0.1} -p $PORT main:app'],
  ])('of FastAPI with %j', async (requirements, web) => {
    const plan = await detect({ ...asgi, 'requirements.txt': requirements });
    expect(plan.processes.web).toBe(web);
    expect(plan.notes).toBeUndefined();
  });

  test('of FastAPI that names none: uvicorn is added, and the log says so', async () => {
    for (const [name, text] of [
      ['requirements.txt', 'fastapi'],
      ['Pipfile', '[packages]\nfastapi = "*"'],
    ] as const) {
      const plan = await detect({ ...asgi, [name]: text });
      expect(plan.processes.web).toBe(uvicorn);
      expect(plan.steps.map(({ command }) => command).join('\n')).toMatch(/pip install .* uvicorn/);
      expect(plan.notes).toEqual([expect.stringMatching(/uvicorn was added/)]);
    }
    const nested = { 'app/main.py': asgi['main.py'], 'requirements.txt': 'fastapi[standard]' };
    expect((await detect(nested)).processes.web).toMatch(/ app\.main:app$/);
  });

  test('of Django, and of Dash', async () => {
    const django = { 'manage.py': '', 'shop/wsgi.py': '', 'shop/asgi.py': '' };
    const web = async (files: Record<string, string>) => (await detect(files)).processes.web;
    expect(await web({ ...django, 'requirements.txt': 'django\ngunicorn\nuvicorn' })).toMatch(
      /^gunicorn .* shop\.wsgi$/,
    );
    expect(await web({ ...django, 'requirements.txt': 'django\nuvicorn' })).toMatch(/ shop\.asgi:application$/);
    expect(await web({ ...django, 'requirements.txt': 'django' })).toBeUndefined();
    const dash = { 'app.py': 'app = Dash()\nserver = app.server\n', 'requirements.txt': 'dash\ngunicorn' };
    expect(await web(dash)).toMatch(/ app:server$/);
  });

  test('a server for development serves nobody in silence', async () => {
    const plan = await detect({ ...wsgi, 'requirements.txt': 'flask' });
    expect(plan.processes.web).toBe('python3 app.py');
    expect(plan.notes).toEqual([expect.stringMatching(/server for development.*Add gunicorn/)]);
    for (const command of [
      'python manage.py runserver 0.0.0.0:$PORT',
      'flask --app x run -p $PORT',
      'fastapi dev main.py',
    ])
      expect((await detect({ Procfile: `web: ${command}\n`, 'requirements.txt': 'x' })).notes).toEqual([
        expect.stringMatching(/server for development/),
      ]);
    expect((await detect({ 'app.py': 'import http.server', 'requirements.txt': '' })).notes).toBeUndefined();
  });
});

describe('packages', () => {
  test('of an application with a pyproject.toml and no lock file: its dependencies, not itself', async () => {
    const install = async (text: string) => commands(await detect({ ...asgi, 'pyproject.toml': text }))[1]!;
    expect(await install('[project]\nname = "x"\ndependencies = ["uvicorn"]\n')).toMatch(
      /^\.platform\/venv\/bin\/python - >/,
    );
    expect(await install('[project.scripts]\nx = "x:y"\n[build-system]\nrequires = []\n')).toMatch(/pip install \. /);
  });

  test('a source without packages has an environment of its own too: those of the host are invisible', async () => {
    const plan = await detect({ 'app.py': '' });
    expect(commands(plan)).toEqual(['python3 -m venv --without-pip .platform/venv']);
    expect(plan.programs).toEqual(['.platform/venv/bin']);
  });

  test('Django collects its static files, unless it is told not to', async () => {
    const { steps } = await detect({ 'manage.py': '', 'shop/wsgi.py': '', 'requirements.txt': 'django\ngunicorn' });
    expect(steps.at(-1)).toMatchObject({ name: 'collectstatic' });
    expect(steps.at(-1)!.command).toMatch(/DISABLE_COLLECTSTATIC[^]*STATIC_ROOT[^]*manage\.py collectstatic --noinput/);
  });
});
