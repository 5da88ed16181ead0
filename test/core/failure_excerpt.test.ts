// What is shown of an output that ends with a failure: outputs of real programs, shortened.
import { FAILURE_EXCERPT_MAX, failureExcerpt, valuesHider } from '../../core/log/failure_excerpt';

const excerpt = (output: string): string => failureExcerpt(output.replace(/^\n/, '').split('\n'), (text) => text);

test.each([
  [
    'an exception of Node.js',
    `
> x@1.0.0 build
> node b.js

node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module 'vite'
Require stack:
- /tmp/m/b.js
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at require (node:internal/modules/helpers:182:18) {
  code: 'MODULE_NOT_FOUND',
  requireStack: [ '/tmp/m/b.js' ]
}

Node.js v20.20.2
npm notice New minor version of npm available!`,
    "Error: Cannot find module 'vite'",
  ],
  [
    'a value that is thrown',
    `/app/x.js:1\nthrow 'no key'\n^\nno key\n(Use \`node --trace-uncaught ...\`)\n\nNode.js v20`,
    'no key',
  ],
  [
    'a program that is not there',
    '\n> x@1.0.0 build\n> vite build\n\nsh: 1: vite: not found',
    'sh: 1: vite: not found',
  ],
  [
    'a lock file that does not fit',
    `
npm error code EUSAGE
npm error
npm error \`npm ci\` can only install packages when your package.json and package-lock.json are in sync.
npm error
npm error Missing: foo@1.0.0 from lock file
npm error
npm error Clean install a project
npm error A complete log of this run can be found in: /root/.npm/_logs/2026-11-26T07_47_16_002Z-debug-0.log`,
    '`npm ci` can only install packages when your package.json and package-lock.json are in sync. ' +
      'Missing: foo@1.0.0 from lock file Clean install a project',
  ],
  [
    'an install script of a package',
    `
npm error code 1
npm error path /src/node_modules/foo
npm error command failed
npm error command sh -c node install.js
npm error /src/node_modules/foo/install.js:1
npm error Error: no prebuilt binary
npm error     at Object.<anonymous> (/src/node_modules/foo/install.js:1:7)
npm error Node.js v20.20.2
npm error A complete log of this run can be found in: /x/_logs/1-debug-0.log`,
    '/src/node_modules/foo/install.js:1 Error: no prebuilt binary',
  ],
  [
    'a build script in a workspace',
    `
src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.
src/a.ts(9,1): error TS2304: Cannot find name 'foo'.
npm error Lifecycle script \`build\` failed with error:
npm error code 2
npm error path /src/packages/a
npm error workspace a@1.0.0
npm error location /src/packages/a
npm error command failed
npm error command sh -c tsc`,
    "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
  ],
  [
    'a bundler whose message is on the next line',
    `
vite v5.4.0 building for production...
✓ 3 modules transformed.
x Build failed in 33ms
error during build:
[vite]: Rollup failed to resolve import "leftpad" from "src/main.js".
This is most likely unintended because it can break your application at runtime.
If you do want to externalize this module explicitly add it to
\`build.rollupOptions.external\`
    at viteWarn (file:///src/node_modules/vite/dist/node/chunks/dep.js:65855:17)`,
    'error during build: [vite]: Rollup failed to resolve import "leftpad" from "src/main.js". This is most likely ' +
      'unintended because it can break your application at runtime. If you do want to externalize this module ' +
      'explicitly add it to `build.rollupOptions.external`',
  ],
  [
    'a framework that says the file first',
    `
Failed to compile.

./app/page.tsx:3:9
Type error: Type 'string' is not assignable to type 'number'.

  1 | export default function Page() {
> 3 |   const n: number = 'x';
    |         ^`,
    "./app/page.tsx:3:9 Type error: Type 'string' is not assignable to type 'number'.",
  ],
  [
    'warnings that are errors in CI',
    `
Treating warnings as errors because process.env.CI = true.

Failed to compile.

[eslint] 
src/App.js
  Line 5:7:  'x' is assigned a value but never used  no-unused-vars
`,
    "Failed to compile. [eslint] src/App.js Line 5:7: 'x' is assigned a value but never used no-unused-vars",
  ],
  [
    'an exception of Python',
    `
Traceback (most recent call last):
  File "/src/manage.py", line 22, in <module>
    main()
  File "/src/mysite/settings.py", line 9, in <module>
    SECRET_KEY = os.environ['SECRET_KEY']
django.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.
[2026-11-26 07:47:16 +0000] [7] [ERROR] Reason: Worker failed to boot.`,
    'django.core.exceptions.ImproperlyConfigured: The SECRET_KEY setting must not be empty.',
  ],
  [
    'pip',
    `
Looking in links: /opt/wheels
ERROR: Could not find a version that satisfies the requirement flask==99.1 (from versions: 0.1, 0.2)
ERROR: No matching distribution found for flask==99.1`,
    'ERROR: No matching distribution found for flask==99.1',
  ],
  [
    'uv',
    `
Using Python 3.11.7 environment at: .platform/venv
  × No solution found when resolving dependencies:
  ╰─▶ Because there is no version of flask==99.1 and you require flask==99.1,
      we can conclude that your requirements are unsatisfiable.`,
    'No solution found when resolving dependencies: Because there is no version of flask==99.1 and you require ' +
      'flask==99.1, we can conclude that your requirements are unsatisfiable.',
  ],
  [
    'uv of 2026',
    `
error: No solution found when resolving dependencies
  cause: Because there is no version of flask==99.1 and you require flask==99.1, we can conclude that they differ.`,
    'error: No solution found when resolving dependencies cause: Because there is no version of flask==99.1 and you ' +
      'require flask==99.1, we can conclude that they differ.',
  ],
  [
    'a compiler: its first error',
    '# example.com/x\n./main.go:3:15: undefined: one\n./main.go:3:30: undefined: other',
    './main.go:3:15: undefined: one',
  ],
  [
    'Go with a package that go.mod lacks',
    'main.go:3:8: no required module provides package github.com/x/y; to add it:\n\tgo get github.com/x/y',
    'main.go:3:8: no required module provides package github.com/x/y; to add it: go get github.com/x/y',
  ],
  [
    'yarn',
    `
error An unexpected error occurred: "https://registry.yarnpkg.com/none: Not found".
info If you think this is a bug, please open a bug report with the information provided in "/src/yarn-error.log".
info Visit https://yarnpkg.com/en/docs/cli/install for documentation about this command.`,
    'error An unexpected error occurred: "https://registry.yarnpkg.com/none: Not found".',
  ],
  [
    'Yarn 4',
    `
➤ YN0000: ┌ Post-resolution validation
➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden.
➤ YN0000: · Failed with errors in 0s 50ms`,
    'YN0028: The lockfile would have been modified by this install, which is explicitly forbidden.',
  ],
  [
    'pnpm',
    ' ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date\n\n' +
      'Note that in CI environments this setting is true by default.\n ELIFECYCLE  Command failed with exit code 1.',
    'ERR_PNPM_OUTDATED_LOCKFILE Cannot install with "frozen-lockfile" because pnpm-lock.yaml is not up to date',
  ],
  [
    'a heap that is full',
    '<--- Last few GCs --->\n[7:0x5] 1 ms: Mark-Compact\n<--- JS stacktrace --->\nFATAL ERROR: Reached heap limit ' +
      'Allocation failed - JavaScript heap out of memory\n 1: 0xb8ced1 node::Abort() [node]',
    'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory',
  ],
  [
    'a log of JSON lines',
    '{"level":30,"msg":"starting"}\n{"level":50,"err":{"type":"Error"},"msg":"no database"}',
    'no database',
  ],
  ['words of its own', 'Checking the weather\nIt rains.', 'It rains.'],
  ['nothing', '\n  \n', ''],
])('of %s', (_, output, expected) => {
  expect(excerpt(output)).toBe(expected);
});

test('is one line without control characters, colours or marks that turn text, and not longer than agreed', () => {
  expect(excerpt('\u001b[31m\u001b[1mError:\u001b[0m \u0007broken\u202e \u001b]8;;http://x\u0007here\u0085')).toBe(
    'Error: broken here',
  );
  const long = excerpt(`Error: ${'long '.repeat(1000)}`);
  expect(long).toHaveLength(FAILURE_EXCERPT_MAX);
  expect(long).toMatch(/ l?o?n?g?…$/);
  expect(excerpt(`${'😀'.repeat(FAILURE_EXCERPT_MAX)}`).isWellFormed()).toBe(true);
});

test('takes no long time with lines that are made to be slow', () => {
  const bad = ['a.', ':1', '(', ' at ', 'Error', 'https://a', '1|', 'E[', '\u001b['].map((part) => part.repeat(16_000));
  const started = performance.now();
  for (const line of bad)
    failureExcerpt(Array<string>(200).fill(line.slice(0, 16_384)), valuesHider({ A: 'a.a.a.', B: '1|1|1|' }));
  expect(performance.now() - started).toBeLessThan(5_000);
});

test('shows no value of a variable, no password of an address, and leaves short words alone', () => {
  const hide = valuesHider({
    KEY: 'sk_live_123',
    PEM: '-----BEGIN KEY-----\nMIIEabcdef\n-----END KEY-----',
    DATABASE_URL: 'postgres://app:p%40ssword@db.example.com/app',
    MODE: 'prod',
    NODE_ENV: 'production',
  });
  expect(hide('sk_live_123 is no key of prod, a production')).toBe('*** is no key of prod, a production');
  expect(hide('parsing MIIEabcdef')).toBe('parsing ***');
  expect(hide('cannot reach postgres://app:p%40ssword@db.example.com/app')).toBe('cannot reach ***');
  expect(hide('password p@ssword refused')).toBe('password *** refused');
  expect(hide('GET https://me:token1@git.example.com/x')).toBe('GET https://***@git.example.com/x');
});
