/** @user any */
// What starts a Python source, and which packages it gets, wherever it names them.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { commands, detect, facts, setUpPlans } from '../../support/deployments/plans';
import { needs } from '../../support/runner/programs';

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
    const dash = { 'app.py': 'app = Dash()\nserver = app.server\n', 'requirements.txt': 'dash\ngunicorn' };
    expect(await web(dash)).toMatch(/ app:server$/);
  });

  test('of Flask and Django that name none: gunicorn is added, and the log says so', async () => {
    const factory = 'from flask import Flask\ndef create_app(test_config=None):\n    return Flask(__name__)\n';
    const sources: [Record<string, string>, RegExp][] = [
      [{ ...wsgi, 'requirements.txt': 'flask' }, / app:app$/],
      [{ 'api/index.py': wsgi['app.py'], 'requirements.txt': 'flask' }, / api\.index:app$/],
      [{ 'shop/__init__.py': factory, 'requirements.txt': 'flask' }, / 'shop:create_app\(\)'$/],
      [{ 'shop/__init__.py': factory, 'requirements.txt': 'flask\nwaitress' }, / 'shop:create_app\(\)'$/],
      [{ 'manage.py': '', 'shop/wsgi.py': '', 'shop/asgi.py': '', 'requirements.txt': 'django' }, / shop\.wsgi$/],
    ];
    for (const [files, target] of sources) {
      const plan = await detect(files);
      expect(plan.processes.web).toMatch(/^gunicorn --bind /);
      expect(plan.processes.web).toMatch(target);
      expect(commands(plan).join('\n')).toMatch(/ gunicorn\b/);
      expect(plan.notes).toEqual([expect.stringMatching(/names no server.*so gunicorn was added/)]);
    }
    expect((await detect({ ...wsgi, 'requirements.txt': 'flask\nwaitress' })).processes.web).toMatch(
      /^waitress-serve /,
    );
  });

  test('a server for development serves nobody in silence', async () => {
    const own = { 'app.py': `${wsgi['app.py']}\nsocketio = SocketIO(app)\n`, 'requirements.txt': 'flask-socketio' };
    const plan = await detect(own);
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

  describe('of projects whose private packages no other installer would find', () => {
    const project = '[project]\nname = "api"\ndependencies = ["shop-private"]\n';
    const uv = { version: '0.9.0', path: '/usr/bin/uv' };
    const withUv = { ...facts, programs: { ...facts.programs, uv } };
    const member = {
      'apps/api/main.py': '',
      'apps/api/pyproject.toml': project,
      'pyproject.toml':
        '[tool.uv.workspace]\nmembers = [\n  "apps/*", # all\n  \'libs/*\',\n]\nexclude = ["apps/old"]\n',
    };
    const install = async (
      files: Record<string, string>,
      root_directory = '.',
      host: typeof facts = withUv,
    ): Promise<string> => commands(await detect(files, { root_directory }, host))[1]!;

    test('a member of a workspace of uv: with the lock file above, frozen, and nothing that stays behind', async () => {
      const locked = { ...member, 'uv.lock': '' };
      const found = await install(locked, 'apps/api');
      expect(found).toContain('uv sync --frozen --no-editable --no-dev');
      expect(found).toContain('UV_PROJECT_ENVIRONMENT="$PWD/.platform/venv"');
      expect(await install(member, 'apps/api')).toContain('uv sync --no-editable --no-dev');
      await expect(install(locked, 'apps/api', facts)).rejects.toThrow(/uv\.lock, and uv is not installed/);
    });

    test.each([
      ['an excluded directory', 'apps/old'],
      ['a directory that is no member', 'tools/api'],
    ])('%s is a project of its own', async (_name, directory) => {
      const files = {
        ...member,
        'uv.lock': '',
        [`${directory}/main.py`]: '',
        [`${directory}/pyproject.toml`]: project,
      };
      expect(await install(files, directory)).not.toContain('uv sync');
    });

    test.each([
      '[tool.uv.sources]\nshop-private = { git = "https://git.example.com/shop" }\n',
      '[[tool.uv.index]]\nurl = "https://pip.example.com/simple"\n',
      '[tool.uv]\nextra-index-url = ["https://pip.example.com/simple"]\n',
    ])('what uv alone reads is installed by uv: %j', async (settings) => {
      const files = { 'main.py': '', 'pyproject.toml': project + settings };
      expect(await install(files)).toContain('uv sync --no-editable --no-dev');
      await expect(install(files, '.', facts)).rejects.toThrow(/settings of uv, and uv is not installed/);
      const other = { ...files, 'pyproject.toml': `${project}[tool.uv]\nrequired-version = "1"\n` };
      expect(await install(other)).not.toContain('uv sync');
    });

    test.each(['[[tool.poetry.source]]', '[[tool.pdm.source]]', '[[tool.rye.sources]]'])(
      'indexes for other programs are refused: %s',
      async (table) => {
        const text = `${project}${table}\nurl = "https://pip.example.com/simple"\n`;
        await expect(install({ 'main.py': '', 'pyproject.toml': text })).rejects.toThrow(/public index.*Commit/);
      },
    );
  });

  needs('python3').test('indexes of a Pipfile go with its packages, several of them with hashes alone', () => {
    const program = path.join(__dirname, '../../../drivers/builder/python/python_dependencies.py');
    const printed = (files: Record<string, string>, ...words: string[]): { stdout: string; stderr: string } => {
      const directory = mkdtempSync(path.join(tmpdir(), 'pipfile-'));
      try {
        for (const [name, text] of Object.entries(files)) writeFileSync(path.join(directory, name), text);
        return spawnSync('python3', [program, ...words], { cwd: directory, encoding: 'utf8' });
      } finally {
        rmSync(directory, { recursive: true });
      }
    };
    const groups =
      '[project]\ndependencies = ["a"]\n[project.optional-dependencies]\nprod = ["b"]\n[dependency-groups]\n' +
      'x = ["c", { include-group = "y" }]\ny = ["d"]\n[tool.poetry.group.z.dependencies]\ne = "^1.2"\n';
    const chosen = ['extra:prod', 'group:x', 'group:z'];
    expect(printed({ 'pyproject.toml': groups }, ...chosen).stdout).toBe('a\nb\nc\nd\ne>=1.2,<2\n');
    const source = (url: string): string => `[[source]]\nname = "x"\nurl = "${url}"\n`;
    const [ours, theirs] = ['https://pip.example.com/simple', 'https://pypi.org/simple'];
    const packages = '[packages]\nshop-private = "*"\n';
    expect(printed({ Pipfile: source(theirs) + packages }).stdout).toBe('shop-private\n');
    expect(printed({ Pipfile: source(ours) + packages }).stdout).toBe(`--index-url ${ours}\nshop-private\n`);
    const both = { Pipfile: source(theirs) + source(ours) + packages };
    expect(printed(both).stderr).toMatch(/names several sources\. Commit a Pipfile\.lock/);
    const lock = {
      _meta: { sources: [{ url: theirs }, { url: ours }] },
      default: { 'shop-private': { version: '==1', hashes: ['sha256:aa'] } },
    };
    expect(printed({ ...both, 'Pipfile.lock': JSON.stringify(lock) }).stdout).toBe(
      `--extra-index-url ${ours}\nshop-private==1 --hash=sha256:aa\n`,
    );
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
