/** @user any */
// What people type who know another command line, and what they mistype.
import { createRequire } from 'node:module';
import path from 'node:path';
import { bundlePart } from '../support/cli/part';
import { buildCli, openHome, type Home } from '../support/cli/svc';

let home: Home;
let foreignCommands: () => Readonly<Record<string, string>>;
beforeAll(() => {
  buildCli();
  home = openHome();
  const output = path.join(home.directory, 'foreign.cjs');
  bundlePart('foreign.ts', output);
  ({ foreignCommands } = createRequire(__filename)(output) as { foreignCommands: typeof foreignCommands });
});
afterAll(() => home?.remove());

test.each([
  ['config:set API_KEY=secret', 'config:set', 'svc env set NAME=value'],
  ['config', 'config', 'svc env ls'],
  ['create', 'create', 'svc init'],
  ['apps:create shop', 'apps:create', 'svc init'],
  ['addons', 'addons', 'svc db ls'],
  ['addons:create heroku-postgresql', 'addons:create', 'svc db create NAME --attach'],
  ['releases', 'releases', 'svc deployments'],
  ['pg:psql', 'pg:psql', 'svc db psql NAME'],
  ['pg:backups:download', 'pg:backups:download', 'svc db download NAME'],
  ['ps:scale web=2', 'ps:scale', 'svc scale web=2'],
  ['secrets set A=b', 'secrets set', 'svc env set NAME=value'],
  ['scale count 3', 'scale count', 'svc scale web=2'],
  ['ssh console', 'ssh console', 'svc exec'],
  ['launch', 'launch', 'svc up --create'],
  ['variables', 'variables', 'svc env ls'],
  ['down', 'down', 'svc delete'],
  ['env add A', 'env add', 'svc env set NAME=value'],
  ['redeploy', 'redeploy', 'svc deploy'],
  ['dashboard', 'dashboard', 'svc open --dashboard'],
])('svc %s names the command that does it, and no value', async (line, said, own) => {
  const { code, stdout, stderr } = await home.svc(line.split(' '));
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toBe(`Error: There is no command \`${said}\` here. Use \`${own}\`.\n`);
});

test('each of them is a command that there is, and none hides one', async () => {
  const lines = new Set(Object.values(foreignCommands()).map((line) => line.replace(/^svc /, '')));
  const own = (await home.output(['__help'])).split('\n').flatMap((line) => /^## svc (.+)$/.exec(line)?.[1] ?? []);
  const isOwn = (name: string): boolean => own.some((one) => one === name || one.startsWith(`${name} `));
  const unknown = [...lines].filter((line) => {
    const name = (/^(?:api|[a-z ]+(?![^ ]))/.exec(line)?.[0] ?? '').trim();
    return !isOwn(name) && name !== 'help' && line !== '--version';
  });
  expect(unknown).toEqual([]);
  expect(own.length).toBeGreaterThan(60);
  expect(Object.keys(foreignCommands()).filter((name) => own.includes(name))).toEqual([]);
  const operations = await home.output(['api', '--list']);
  for (const [, id = ''] of [...lines].join('\n').matchAll(/^api (\w+)/gm)) expect(operations).toContain(`${id}\t`);
}, 30_000);

test('a flag before the command is said to be there', async () => {
  expect(await home.svc(['--app', 'shop', 'ps'])).toEqual({
    ...{ code: 2, stdout: '' },
    stderr: 'Error: Flags stand behind the command, and --app is before it.\nExample: svc status --app shop\n',
  });
});

test('svc logs --tail follows, and a group alone lists', async () => {
  const env = { SVC_URL: 'http://127.0.0.1:1', SVC_TOKEN: 'x', SVC_PROJECT: 'prj_1', SVC_APP: `app_${'0'.repeat(26)}` };
  for (const words of [
    ['logs', '--tail', '--until', '1h'],
    ['logs', '-t', '--until', '1h'],
  ])
    expect(await home.svc(words, { env })).toMatchObject({
      code: 2,
      stderr: 'Error: --follow has no end: leave out --until.\n',
    });
  for (const group of ['db', 'env', 'volumes', 'domains', 'projects'])
    expect(await home.svc([group], { env })).toMatchObject({
      code: 75,
      stderr: expect.stringContaining('Could not connect'),
    });
  expect(await home.output(['db', '--help'])).toContain('svc db create');
});

test.each([
  [['lgos'], 'There is no command `lgos`. Did you mean `logs`?\n'],
  [['stauts'], 'There is no command `stauts`. Did you mean `status`?\n'],
  [['db', 'crete'], 'There is no command `crete`. Did you mean `create`?\n'],
  [['constructor'], 'There is no command `constructor`. See svc help for all commands.\n'],
  [['frobnicate'], 'There is no command `frobnicate`. See svc help for all commands.\n'],
  [['logs', '--lines', '3', '--tial'], 'There is no flag --tial. See --help.\n'],
])('%j is mistyped: it is said once, with what was meant', async (words, said) => {
  expect(await home.svc(words)).toEqual({ code: 2, stdout: '', stderr: said });
});
