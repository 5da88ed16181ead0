/** @user any */
// Texts of tenants that are made to keep a builder busy: each is read in a time that grows with its length alone.
import { lineEndHint } from '../../../drivers/builder/line_ends';
import { detect, setUpPlans, source } from '../../support/deployments/plans';

setUpPlans();

type Files = Record<string, string>;
/** On a busy machine; what was quadratic took minutes, and what was exponential longer. */
const PATIENCE_MS = 8_000;
const LONG = 900_000;
const lines = '\n'.repeat(LONG);
const spaces = ' '.repeat(LONG);
const server = "import http from 'node:http';\nhttp.createServer().listen(process.env.PORT);\n";
const python = { 'app.py': 'app = Flask(__name__)\n' };
const setup = (text: string): Files => ({ ...python, 'setup.py': `from setuptools import setup\nsetup(${text}` });

test.each<[string, Files]>([
  ['comments of a list without an end', setup(`install_requires = [${'#'.repeat(40)}`)],
  ['comments of a list, one a line', setup(`install_requires = [${'#\n'.repeat(LONG / 2)}`)],
  ['lists without an end', setup('install_requires = [x '.repeat(LONG / 22))],
  ['quotes without an end', setup(`install_requires = [${'"a" '.repeat(LONG / 4)}"`)],
  ['empty lines of setup.py', setup(lines)],
  ['empty lines of a program', { 'requirements.txt': 'flask\n', 'app.py': `${lines}app = 1\n` }],
  ['spaces of a requirement', { ...python, 'requirements.txt': `a${spaces}b\n` }],
  ['empty lines of settings', { 'index.html': '', 'config.toml': lines }],
  ['empty lines of TypeScript', { 'package.json': '{}', 'src/index.ts': `${lines}x;\n${server}` }],
  ['spaces of an import', { 'package.json': '{}', 'src/index.ts': `import${spaces}x;\n${server}` }],
  ['spaces of a server', { 'package.json': '{}', 'server/index.js': `createServer(); import${spaces}x\n` }],
  [
    'uses of a type',
    { 'package.json': '{}', 'src/index.ts': `import { A } from 'a';\n${server}${'x: A; '.repeat(LONG / 6)}` },
  ],
  [
    'many imports',
    {
      'package.json': '{}',
      'src/index.ts': `import { ${Array.from({ length: 500 }, (_, i) => `a${i}`).join(', ')} } from 'a';\n`.repeat(150),
      'main.ts': server,
    },
  ],
  ['a lock of yarn', { 'package.json': '{"scripts": {"start": "node a"}}', 'yarn.lock': `__metadata:${lines}` }],
  [
    'runners of a script',
    { 'package.json': JSON.stringify({ scripts: { start: `${'npx '.repeat(LONG / 4)}vite` } }), 'index.html': '' },
  ],
  ['spaces of a Procfile', { 'index.html': '', Procfile: `web: a${spaces}b\n` }],
  [
    'spaces of a workspace of pnpm',
    {
      'package.json': '{"scripts": {"start": "node a"}}',
      'pnpm-workspace.yaml': `packages:\n  - ${spaces}a\u2028b\n`,
    },
  ],
  ['spaces of a go.work', { 'go.mod': 'module x\n', 'main.go': 'package main\n', 'go.work': `use${spaces}a\u2028b\n` }],
])(
  '%s',
  async (_name, files) => {
    const start = performance.now();
    await detect(files).catch(() => null);
    expect(performance.now() - start).toBeLessThan(PATIENCE_MS);
  },
  60_000,
);

test('what a process printed', async () => {
  const start = performance.now();
  await lineEndHint(source({ a: '' }), ['.'], ['.'.repeat(LONG)]);
  expect(performance.now() - start).toBeLessThan(PATIENCE_MS);
});

test('what a list states is read past its comments', async () => {
  const text = 'install_requires=[\n  # not "gunicorn"]\n  "flask",  # [\n  \'waitress>=1\', ]\n)\n';
  expect((await detect(setup(text))).processes.web).toMatch(/^waitress-serve /);
});

test('types are told from what is used as a value too', async () => {
  const files = (use: string): Files => ({
    'package.json': '{}',
    'src/index.ts': `import { A } from './a.ts';\n${server}${use}`,
  });
  expect((await detect(files('let x: A;\nnew A();\n'))).processes.web).toBe('node src/index.ts');
  expect((await detect(files('let x: A;\n'))).processes.web).toBeUndefined();
});

describe('folders are searched by one rule, for applications and for programs of Go', () => {
  const folders = (count: number): Files =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`apps/a${String(i).padStart(4, '0')}`, '']));
  const application = { 'apps/_x/a': '', 'apps/web/package.json': '{}' };
  const program = { 'go.mod': 'module example.com/x\n', 'apps/web/main.go': 'package main\n\nfunc main() {}\n' };
  const recognised = (files: Files): Promise<string> =>
    detect(files).then(
      ({ missing }) => missing ?? '',
      (error: Error) => error.message,
    );

  test('up to 5,000 entries', async () => {
    expect(await recognised({ ...application, ...folders(600) })).toMatch(/applications in folders: apps\/web\./);
    expect((await detect({ ...program, ...folders(600) })).processes.web).toBe('bin/web');
  });

  test('and no further', async () => {
    expect(await recognised({ ...application, ...folders(5000) })).not.toMatch(/apps\/web/);
  }, 60_000);
});
