/** @user any */
// The forms in which Python sources state their packages: each is installed, or refused with a sentence.
import { buildError, commands, detect, facts, setUpPlans } from '../../support/deployments/plans';

setUpPlans();

const program = (name: string) => ({ version: '99.1.0', path: `/usr/bin/${name}` });
const host: typeof facts = {
  ...facts,
  programs: { ...facts.programs, uv: program('uv'), poetry: program('poetry') },
};
type Files = Record<string, string | Buffer>;
const app = { 'main.py': 'print(1)\n' };
const install = async (files: Files, by = host): Promise<string> => {
  const { steps } = await detect(files as Record<string, string>, {}, by);
  return steps[1]?.command ?? '';
};
const error = (files: Files): Promise<string> => buildError(detect(files as Record<string, string>, {}, host));

describe('is installed', () => {
  test.each<[string, Files, RegExp]>([
    [
      'the file for production',
      { 'requirements/base.txt': 'a', 'requirements/production.txt': '-r base.txt' },
      / -r requirements\/production\.txt\b/,
    ],
    [
      'the file of all',
      { 'requirements/base.txt': 'a', 'requirements/dev.txt': '-r base.txt' },
      / -r requirements\/base\.txt\b/,
    ],
    [
      'the only file for production',
      { 'requirements/shop.txt': 'a', 'requirements/tests.txt': 'b' },
      / -r requirements\/shop\.txt\b/,
    ],
    ['a file beside', { 'requirements-prod.txt': 'a', 'requirements-dev.txt': 'b' }, / -r requirements-prod\.txt\b/],
    ['what requirements are made of', { 'requirements.in': 'a' }, / -r requirements\.in\b/],
    [
      'the lock of Rye',
      {
        'requirements.lock': 'a==1',
        'pyproject.toml': '[project]\nname = "x"\ndependencies = ["a"]\n[tool.rye]\nmanaged = true\n',
      },
      / -r requirements\.lock\b/,
    ],
    [
      'requirements of a project that names none',
      { 'requirements/prod.txt': 'a', 'pyproject.toml': '[project]\nname = "x"\n' },
      / -r requirements\/prod\.txt\b/,
    ],
    [
      'an empty requirements.txt beside a lock',
      { 'requirements.txt': '# none\n', 'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': '' },
      /\buv sync --frozen\b/,
    ],
    ['the standard lock', { 'pylock.toml': 'lock-version = "1.0"\n' }, / -r pylock\.toml\b/],
    [
      'the standard lock for production',
      { 'pylock.dev.toml': '', 'pylock.production.toml': '' },
      / -r pylock\.production\.toml\b/,
    ],
    [
      'setup.py',
      { 'setup.py': 'from setuptools import setup\nsetup(name="x", install_requires=["a"])\n' },
      / uv pip install .* \. \|\| \{[^]* -r setup\.py /,
    ],
    [
      'setup.cfg',
      { 'setup.cfg': '[metadata]\nname = x\n[options]\ninstall_requires =\n  a\n' },
      / uv pip install .* \. \|\| \{[^]* -r setup\.cfg /,
    ],
    [
      'dotted keys',
      { 'pyproject.toml': 'project.name = "x"\nproject.dependencies = ["a"]\n' },
      / -r pyproject\.toml\b/,
    ],
    [
      'origins of uv in an inline table',
      {
        'pyproject.toml':
          '[project]\nname = "x"\ndependencies = ["a"]\n[tool]\nuv = { sources = { a = { path = "../a" } } }\n',
      },
      /\buv sync --no-editable\b/,
    ],
    [
      'a group for production alone',
      { 'pyproject.toml': '[dependency-groups]\nprod = ["a"]\ndev = ["b"]\n' },
      / --group prod\b/,
    ],
    [
      'a package that may not build',
      { 'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': '' },
      /uv sync .* \|\| \{\n.*could not be installed.*\n.* --no-install-project /,
    ],
    [
      'poetry.lock',
      { 'pyproject.toml': '[tool.poetry]\nname = "x"\n', 'poetry.lock': '' },
      /poetry install .*--only main \|\| \{\n.*\n.* --no-root /,
    ],
  ])('%s', async (_name, files, command) => {
    expect(await install({ ...app, ...files })).toMatch(command);
  });

  test('without uv too, by pip: groups that it may not know, and nothing that uv alone would look for', async () => {
    const groups = { 'pyproject.toml': '[dependency-groups]\nprod = ["a"]\n' };
    expect(await install({ ...app, ...groups }, facts)).toMatch(/^\S+\/python - group:prod > /);
    const dynamic = { 'pyproject.toml': '[project]\nname = "x"\ndynamic = ["dependencies"]\n' };
    expect(await install({ ...app, ...dynamic }, facts)).toMatch(/pip install \. /);
    const index = '[tool.uv]\nindex-url = "https://pip.example.com/simple"\n';
    const own = { ...app, 'requirements.txt': 'a', 'pyproject.toml': index };
    await expect(install(own, facts)).rejects.toThrow(/with settings of uv, and uv is not installed/);
    await expect(install({ ...app, 'pylock.toml': '' }, facts)).rejects.toThrow(/pylock\.toml, and uv is not/);
  });

  test('what is passed over is named', async () => {
    const files = { ...app, 'requirements.txt': 'a', 'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': '' };
    expect((await detect(files, {}, host)).notes).toEqual([
      'Packages are installed from requirements.txt; uv.lock is not read. Remove what you do not use.',
    ]);
    expect((await detect({ ...app, Pipfile: '', 'Pipfile.lock': '{}' }, {}, host)).notes).toBeUndefined();
  });

  test('a large lock file is read', async () => {
    const lock = `[[package]]\nname = "gunicorn"\n${'# hash\n'.repeat(300_000)}`;
    const files = { 'app.py': 'app = Flask(__name__)\n', 'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': lock };
    expect((await detect(files, {}, host)).processes.web).toMatch(/^gunicorn /);
  });

  test('a project in a folder of its own runs there: Django below the packages', async () => {
    const files = { 'requirements.txt': 'django\ngunicorn\n', 'shop/manage.py': '', 'shop/shop/wsgi.py': '' };
    const plan = await detect(files, {}, host);
    expect(plan.processes.web).toMatch(/^cd shop && exec gunicorn .* shop\.wsgi$/);
    expect(plan.steps.at(-1)).toMatchObject({
      name: 'collectstatic',
      command: expect.stringMatching(/^cd shop \|\|/m),
    });
    expect(plan.steps.at(-1)!.command).toContain('PATH="$OLDPWD/.platform/venv/bin:$PATH" python3 manage.py');
    const beside = { ...files, 'requirements.txt': 'fastapi\nuvicorn\n', 'api/main.py': 'app = FastAPI()\n' };
    const other = await detect(beside, {}, host);
    expect(other.processes.web).toMatch(/^uvicorn .* api\.main:app$/);
    expect(other.steps.map(({ name }) => name)).not.toContain('collectstatic');
    const bringing = { ...beside, 'requirements.txt': 'wagtail\n' };
    expect((await detect(bringing, {}, host)).processes.web).toMatch(/^cd shop && /);
    const unstated = { 'shop/manage.py': '', 'shop/shop/wsgi.py': '', 'requirements.txt': '' };
    expect((await detect(unstated, {}, host)).processes.web).toMatch(/^cd shop && exec gunicorn /);
  });
});

describe('is refused', () => {
  test.each<[string, Files, RegExp]>([
    [
      'an environment of conda',
      { 'environment.yml': 'dependencies:\n- numpy\n' },
      /^The packages are stated in environment\.yml, which conda reads .*requirements\.txt/,
    ],
    [
      'a project of pixi',
      { 'pixi.toml': '[dependencies]\n' },
      /^The packages are stated in pixi\.toml, which conda \(pixi\) reads/,
    ],
    [
      'files of which none is for production',
      { 'requirements/dev.txt': 'a', 'requirements/test.txt': 'b' },
      /^The source has requirements\/dev\.txt and .*`-r requirements\/dev\.txt`\.$/,
    ],
    [
      'groups of which none is for production',
      { 'pyproject.toml': '[dependency-groups]\ndev = ["b"]\nlint = ["c"]\n' },
      /^pyproject\.toml has only the dependency groups dev, lint, .*`production`/,
    ],
    [
      'TOML that is none',
      { 'pyproject.toml': '[project]\nname = "x\n' },
      /^pyproject\.toml is not valid TOML: see line 2\.$/,
    ],
    [
      'indexes of Rye',
      {
        'pyproject.toml':
          '[project]\nname = "x"\ndependencies = ["a"]\n[[tool.rye.sources]]\nurl = "https://pip.example.com"\n',
      },
      /public index\. Commit a requirements\.txt .*name the indexes in `tool\.uv\.index` and commit a uv\.lock\.$/,
    ],
  ])('%s', async (_name, files, reason) => {
    expect(await error({ ...app, ...files })).toMatch(reason);
  });

  test('but not where a Dockerfile or another language says how', async () => {
    const conda = { 'environment.yml': 'dependencies:\n- numpy\n' };
    const site = { ...conda, 'index.html': '<p>docs</p>' };
    expect(await error(site)).not.toContain('conda');
    const node = { ...conda, 'package.json': '{"scripts": {"start": "node a.js"}}' };
    expect((await detect(node, {}, host)).kind).toBe('node');
  });
});

describe('what a process starts', () => {
  const project = '[project]\nname = "x"\ndependencies = ["flask"]\n';
  const flask = { 'app.py': 'app = Flask(__name__)\n' };

  test.each<[string, Files, RegExp, RegExp]>([
    [
      'a group of uv',
      {
        'uv.lock': '[[package]]\nname = "flask"\n[[package]]\nname = "gunicorn"\n',
        'pyproject.toml': `${project}[dependency-groups]\ndev = ["gunicorn"]\n`,
      },
      /uv sync --frozen --no-default-groups --group dev /,
      /dependency group dev .* starts gunicorn/,
    ],
    [
      'optional dependencies',
      { 'pyproject.toml': `${project}[project.optional-dependencies]\nprod = ["gunicorn"]\n` },
      / -r pyproject\.toml --extra prod/,
      /optional dependencies prod .* starts gunicorn/,
    ],
    [
      'a group of Poetry',
      {
        'poetry.lock': '',
        'pyproject.toml':
          '[tool.poetry]\nname = "x"\ndependencies.flask = "*"\ngroup.serve.dependencies.gunicorn = "*"\n',
      },
      /poetry install .*--only main,serve /,
      /dependency group serve .* starts gunicorn/,
    ],
  ])('is installed from %s, and the log says so', async (_name, files, command, note) => {
    const plan = await detect({ ...flask, ...files } as Record<string, string>, {}, host);
    expect(plan.processes.web).toMatch(/^gunicorn /);
    expect(plan.steps[1]!.command).toMatch(command);
    expect(plan.notes).toEqual([expect.stringMatching(note)]);
  });

  test('may need groups that are named after it: they are installed in any case', async () => {
    const files = {
      ...flask,
      'uv.lock': '',
      'pyproject.toml': `${project}[dependency-groups]\nprod = ["sentry-sdk"]\n`,
    };
    const plan = await detect(files, {}, host);
    expect(plan.steps[1]!.command).toContain('--no-default-groups --group prod ');
    expect(plan.notes).toContainEqual(
      expect.stringMatching(/^The dependency group prod .* because it is for production\.$/),
    );
  });

  test('by a Procfile counts too; what is installed anyway needs no group', async () => {
    const groups = '[dependency-groups]\ndev = ["watchdog", "waitress"]\n';
    const files = { ...flask, 'uv.lock': '', 'pyproject.toml': project + groups };
    expect(await install({ ...files, Procfile: 'web: waitress-serve app:app\n' })).toContain(
      '--no-default-groups --group dev',
    );
    expect(await install({ ...files, Procfile: 'web: flask run\n' })).not.toContain('--group');
  });
});

describe('the environment', () => {
  test('is made by uv, and by Python where uv is not to be had', async () => {
    const requirements = { ...app, 'requirements.txt': 'a\n' };
    const [environment] = commands(await detect(requirements, {}, host));
    expect(environment).toMatch(/^uv venv .*--python python3 \.platform\/venv/);
    expect(commands(await detect(requirements))[0]).toBe('python3 -m venv .platform/venv');
  });

  test.each([
    [{ 'requirements.txt': 'a==1\nb[c]==2.0 ; python_version > "3"\n' }, true],
    [{ 'requirements.txt': 'a==1 \\\n  --hash=sha256:00\n' }, true],
    [{ 'requirements.txt': 'a==1\nb\n' }, false],
    [{ 'requirements.txt': 'a==1.*\n' }, false],
    [{ 'requirements.txt': 'a==1\n-e .\n' }, false],
    [{ 'pyproject.toml': '[project]\nname = "x"\n', 'uv.lock': '' }, true],
    [{ 'pyproject.toml': '', 'poetry.lock': '[package.source]\ntype = "directory"\n' }, false],
  ])('of %j is kept for the next build: %j', async (files, isKept) => {
    const [environment] = (await detect({ ...app, ...files } as Record<string, string>, {}, host)).steps;
    expect(environment!.command.includes('python-environment')).toBe(isKept);
  });
});
