// What the command line does on systems that the tests do not run on: paths, line ends, programs, modes.
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { bundlePart } from '../support/cli/part';

type Environment = Readonly<Record<string, string | undefined>>;

interface Invocation {
  program: string;
  args: string[];
  shell: boolean;
}

interface Parts {
  'system.ts': {
    configDirectoryOf(platform: string, env: Environment, home: string): string;
    editorInvocation(platform: string, env: Environment, file: string): Invocation;
    browserInvocation(platform: string, env: Environment, url: string): Invocation;
    linkTargetOf(platform: string, target: string): string;
    isExecutableFile(platform: string, mode: number, readHead: () => string): boolean;
  };
  'dotenv.ts': { parseDotenv(text: string, file: string): Map<string, string> };
  'source/files.ts': { findSourceFiles(folder: string): { files: { name: string }[] } };
}

let directory: string;
let system: Parts['system.ts'];
let dotenv: Parts['dotenv.ts'];
let files: Parts['source/files.ts'];
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-parts-'));
  const load = <Source extends keyof Parts>(source: Source): Parts[Source] => {
    const output = path.join(directory, `${path.basename(source)}.cjs`);
    bundlePart(source, output);
    return createRequire(__filename)(output) as Parts[Source];
  };
  system = load('system.ts');
  dotenv = load('dotenv.ts');
  files = load('source/files.ts');
});
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));

test.each([
  ['linux', {}, '/srv/ada', '/srv/ada/.config/svc'],
  ['linux', { XDG_CONFIG_HOME: '/etc/ada' }, '/srv/ada', '/etc/ada/svc'],
  ['linux', { XDG_CONFIG_HOME: 'relative', APPDATA: '/x' }, '/srv/ada', '/srv/ada/.config/svc'],
  ['darwin', {}, '/srv/ada', '/srv/ada/.config/svc'],
  ['win32', { APPDATA: 'C:\\Users\\Ada\\AppData\\Roaming' }, 'C:\\Users\\Ada', 'C:\\Users\\Ada\\AppData\\Roaming\\svc'],
  ['win32', {}, 'C:\\Users\\Ada', 'C:\\Users\\Ada\\.config\\svc'],
  ['win32', { XDG_CONFIG_HOME: 'D:\\config', APPDATA: 'C:\\x' }, 'C:\\Users\\Ada', 'D:\\config\\svc'],
] as const)('logins on %s with %j are in a directory of the person', (platform, env, home, expected) => {
  expect(system.configDirectoryOf(platform, env, home)).toBe(expected);
});

test('an editor is started without a shell of another system, and with its own arguments', () => {
  expect(system.editorInvocation('linux', { EDITOR: 'code --wait' }, "/tmp/it's")).toEqual({
    program: 'sh',
    args: ['-c', 'code --wait "$1"', 'sh', "/tmp/it's"],
    shell: false,
  });
  const file = 'C:\\Users\\Ada B\\variables.env';
  expect(system.editorInvocation('win32', {}, file).program).toBe(`notepad "${file}"`);
  expect(system.editorInvocation('win32', { VISUAL: 'code --wait' }, file)).toEqual({
    program: `code --wait "${file}"`,
    args: [],
    shell: true,
  });
});

test('an address is one argument of a program, never a line of a shell', () => {
  const url = 'https://platform.example.com/oauth/authorize?a=1&calc.exe';
  for (const platform of ['linux', 'darwin', 'win32'] as const) {
    const { program, args, shell } = system.browserInvocation(platform, {}, url);
    expect([args.at(-1), shell, /cmd|sh|start/.test(program)]).toEqual([url, false, false]);
  }
  expect(system.browserInvocation('win32', { BROWSER: 'firefox' }, url).program).toBe('firefox');
});

test('archives have slashes, and programs are known by their first bytes where there are no modes', () => {
  expect(system.linkTargetOf('win32', '..\\shared\\a')).toBe('../shared/a');
  expect(system.linkTargetOf('linux', 'a\\b')).toBe('a\\b');
  const unread = (): string => {
    throw new Error('read');
  };
  expect(system.isExecutableFile('linux', 0o755, unread)).toBe(true);
  expect(system.isExecutableFile('linux', 0o644, unread)).toBe(false);
  expect(system.isExecutableFile('win32', 0o666, () => '#!')).toBe(true);
  expect(system.isExecutableFile('win32', 0o777, () => 'MZ')).toBe(false);
});

test('files with line ends of Windows say the same', () => {
  const variables = dotenv.parseDotenv('\uFEFFA=1\r\nB="two\r\nlines"\r\n# note\r\n\r\nC=\r\n', '.env');
  expect([...variables]).toEqual([
    ['A', '1'],
    ['B', 'two\nlines'],
    ['C', ''],
  ]);
  expect([...dotenv.parseDotenv('A=1\rB=2\r', '.env').keys()]).toEqual(['A', 'B']);
  const folder = path.join(directory, 'folder');
  const write = (name: string, text: string): void => {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  };
  write('.gitignore', '*.log\r\n/build/\r\n!keep.log\r\n');
  write('.dockerignore', '# docs\r\ndocs\r\n');
  for (const name of ['a.log', 'keep.log', 'build/x', 'docs/y', 'src/a.js', 'Dockerfile']) write(name, '');
  expect(files.findSourceFiles(folder).files.map(({ name }) => name)).toEqual([
    '.dockerignore',
    '.gitignore',
    'Dockerfile',
    'keep.log',
    'src/a.js',
  ]);
});
