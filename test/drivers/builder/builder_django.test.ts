// What the build of a Django application does about its static files: the step itself, run beside a manage.py that
// answers as that of Django does (test/starters/django-static is Django itself).
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { needs } from '../../support/runner/programs';
import { detect, setUpPlans } from '../../support/deployments/plans';

setUpPlans();
const { describe: onlyIf } = needs('python3');

/** `DIFF` is what `diffsettings --all` says of STATIC_ROOT; without it, the settings cannot be read. */
const MANAGE = `
import os, sys
if 'DIFF' not in os.environ:
    sys.exit('ImproperlyConfigured: Set the SECRET_KEY environment variable')
if sys.argv[1] == 'diffsettings':
    print("### STATICFILES_DIRS = []\\n" + os.environ['DIFF'] + "\\nSTATIC_URL = '/static/'")
else:
    print('ran ' + ' '.join(sys.argv[1:]))
    sys.exit(int(os.environ.get('CODE', '0')))
`;
const SETTINGS = "import os\nif 'PRODUCTION' in os.environ:\n    STATIC_ROOT = 'static'\n";

onlyIf('static files of Django', () => {
  let folder = '';
  beforeAll(() => void (folder = mkdtempSync(path.join(os.tmpdir(), 'django-'))));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  async function build(env: Record<string, string>, settings = SETTINGS): Promise<{ code: number; output: string }> {
    const files = { 'manage.py': MANAGE, 'shop/settings.py': settings, 'requirements.txt': 'Django\ngunicorn\n' };
    const { steps } = await detect(files);
    const command = steps.find(({ name }) => name === 'collectstatic')!.command;
    const cwd = mkdtempSync(path.join(folder, 'source-'));
    mkdirSync(path.join(cwd, 'shop'));
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(cwd, name), text);
    const ended = spawnSync('/bin/sh', ['-c', command], {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      encoding: 'utf8',
    });
    return { code: ended.status!, output: `${ended.stdout}${ended.stderr}` };
  }

  test.each(["STATIC_ROOT = '/app/static'", "STATIC_ROOT = PosixPath('/app/static')"])(
    'are collected where the settings that hold say %s',
    async (DIFF) => {
      expect(await build({ DIFF })).toEqual({ code: 0, output: 'ran collectstatic --noinput\n' });
    },
  );

  test.each(['### STATIC_ROOT = None', "STATIC_ROOT = ''", 'STATIC_ROOT = None'])(
    'are left alone, with a line in the log, where they say %s: production alone has one',
    async (DIFF) => {
      const { code, output } = await build({ DIFF });
      expect([code, output]).toEqual([
        0,
        expect.stringMatching(/^The settings of Django have no STATIC_ROOT here: .*\n$/),
      ]);
    },
  );

  test('are left alone in silence where no settings name STATIC_ROOT at all', async () => {
    expect(await build({ DIFF: '### STATIC_ROOT = None' }, 'DEBUG = True\n')).toEqual({ code: 0, output: '' });
  });

  test('fail the build where the settings cannot be read, and the log says why and how to go on', async () => {
    const { code, output } = await build({});
    expect([code, output]).toEqual([
      1,
      expect.stringMatching(/SECRET_KEY[^]*Set the variable DISABLE_COLLECTSTATIC=1/),
    ]);
  });

  test('fail the build where collecting fails', async () => {
    const { code, output } = await build({ DIFF: "STATIC_ROOT = 'static'", CODE: '3' });
    expect([code, output]).toEqual([1, expect.stringMatching(/ran collectstatic[^]*DISABLE_COLLECTSTATIC=1/)]);
  });

  test.each(['1', 'true', 'yes'])('are left alone where DISABLE_COLLECTSTATIC is %s', async (DISABLE_COLLECTSTATIC) => {
    const ended = await build({ DIFF: "STATIC_ROOT = 'static'", DISABLE_COLLECTSTATIC });
    expect(ended).toEqual({ code: 0, output: 'DISABLE_COLLECTSTATIC is set.\n' });
  });

  test.each(['0', 'false', ''])('are collected where it is `%s`', async (DISABLE_COLLECTSTATIC) => {
    const ended = await build({ DIFF: "STATIC_ROOT = 'static'", DISABLE_COLLECTSTATIC });
    expect(ended.output).toMatch(/ran collectstatic/);
  });
});
