/** @user any */
// Files of variables: what svc writes, other programs read as it was; and what cannot be written, set or started is
// said.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { limits } from '../../core/limits';
import { parseEnvFile } from '../../server/operator/env_file';
import { bundlePart } from '../support/cli/part';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { named } from '../support/runner/programs';
import { ROOT } from '../support/runner/repository';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
let application: string;
let parseDotenv: (text: string, file: string) => Map<string, string>;
beforeAll(async () => {
  buildCli();
  service = await startService();
  home = openHome(service);
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop' } })).body.id;
  const part = path.join(home.directory, 'dotenv.cjs');
  bundlePart('dotenv.ts', part);
  ({ parseDotenv } = createRequire(__filename)(part) as { parseDotenv: typeof parseDotenv });
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const svc = (args: string[]): ReturnType<Home['svc']> => home.svc(['env', ...args, '--app', application]);
const file = (): string => path.join(home.folder, '.env');
const setAll = async (values: readonly string[]): Promise<Record<string, string>> => {
  await service.sql('delete from environment_variables where application_id = $1', [application]);
  const variables = Object.fromEntries(values.map((value, index) => [`V${index}`, value]));
  for (const [key, value] of Object.entries(variables)) {
    const { status } = await service.call('PUT', `/v2/applications/${application}/env/${key}`, { body: { value } });
    expect(status).toBe(201);
  }
  return variables;
};

const PEM = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg+/=\n-----END PRIVATE KEY-----\n';
const ACCOUNT = { type: 'service_account', private_key: PEM, client_email: 'shop@example.com' };
const VALUES = [
  ...[JSON.stringify(ACCOUNT), JSON.stringify(ACCOUNT, null, 2), PEM, PEM.trim()],
  ...['', ' ', ' before', 'after  ', '\t', '\n', '\n\nlines\n', '#', '# all', 'a#b', 'a #b', 'a\n#b\nc', 'a\nV1=c\nd'],
  ...[
    '$HOME',
    '$$',
    '$(id)',
    '`id`',
    '$',
    'cost 5$',
    '!!',
    '~',
    '~/x',
    '*',
    'a;b&c|d<e>f',
    '(a)[b]{c}',
    '\\n',
    '\\\\host',
  ],
  ...[
    'C:\\new\\table',
    '"quoted"',
    '""',
    '"',
    'say "it"',
    'export A=1',
    'a=b=c',
    '=',
    'é ☺ 😀',
    '\u2028',
    '\u00a0x\u00a0',
  ],
  ...["it's", "'", "''", "it's #1", "it's 5$", "it's\nB=c\n", "it's C:\\dir", "it's $, or $.", " ' ", "it's \\w"],
  'postgresql://u:p%40ss@db.example.com:5432/shop?sslmode=verify-full&a=1',
];

const PRINT = 'process.stdout.write(JSON.stringify(process.env))';
const readBy = (program: string, ...args: string[]): Record<string, string> =>
  JSON.parse(
    execFileSync(program, args, { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'pipe'] }).toString(),
  );
const sourcedBy = (shell: string): Record<string, string> =>
  readBy(shell, '-c', 'set -a; . "$1"; exec "$2" -e "$3"', 'sh', file(), process.execPath, PRINT);
const DOTENV = path.join(ROOT, 'test/clients/node_modules/dotenv');
const isThere = (program: string, ...args: string[]): boolean => {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};
const READERS: [name: string, missing: string | false, read: () => Record<string, string>][] = [
  ['node --env-file', false, () => readBy(process.execPath, `--env-file=${file()}`, '-e', PRINT)],
  ['sh', false, () => sourcedBy('sh')],
  ['bash', !isThere('bash', '-c', 'true') && 'bash', () => sourcedBy('bash')],
  [
    'dotenv',
    !fs.existsSync(DOTENV) && 'npm run install:clients',
    () =>
      (createRequire(__filename)(DOTENV) as { parse(text: Buffer): Record<string, string> }).parse(
        fs.readFileSync(file()),
      ),
  ],
  ['svc env push', false, () => Object.fromEntries(parseDotenv(fs.readFileSync(file(), 'utf8'), '.env'))],
  [
    'platform env set --file',
    false,
    () => Object.fromEntries(parseEnvFile(fs.readFileSync(file(), 'utf8')).map(({ key, value }) => [key, value])),
  ],
];

describe('svc env pull', () => {
  let variables: Record<string, string>;
  beforeAll(async () => {
    variables = await setAll(VALUES);
    expect(await svc(['pull', '--yes'])).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^python-dotenv reads V\d+ differently: .+\nWrote \.env\./),
    });
  });

  for (const [name, missing, read] of READERS) {
    const reading = missing ? (named(test.skip, ` (needs: ${missing})`) as jest.It) : test;
    reading(`writes what ${name} reads as it was`, () => {
      const found = read();
      expect(Object.fromEntries(Object.keys(variables).map((key) => [key, found[key]]))).toEqual(variables);
    });
  }

  const python = 'import json, sys, dotenv; print(json.dumps(dict(dotenv.dotenv_values(sys.argv[1]))))';
  const hasPython = isThere('python3', '-c', 'import dotenv');
  const reading = hasPython ? test : (named(test.skip, ' (needs: python-dotenv)') as jest.It);
  reading('writes what python-dotenv reads as it was, but for what is named', () => {
    const found = readBy('python3', '-c', python, file());
    const different = Object.keys(variables).filter((key) => found[key] !== variables[key]);
    expect(different.map((key) => variables[key])).toEqual(['\\\\host']);
  });

  test('and push sees no change', async () => {
    expect(await svc(['push', '--yes'])).toMatchObject({ code: 0, stderr: 'Nothing has changed.\n' });
  });

  test.each([
    ['both kinds of quotes', `it's "x"`],
    ['a backslash at the end', 'C:\\dir\\'],
    ['a carriage return', 'a\r\nb'],
    ['a quote beside a variable', "it's $HOME"],
    ['a quote beside a program', "it's `id`"],
  ])('writes nothing where programs would not agree on the value: %s', async (_, value) => {
    const before = fs.readFileSync(file(), 'utf8');
    await setAll(['fine', value]);
    const refused = await svc(['pull', '--yes']);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/Error: V1: .+ do not agree/) });
    expect(refused.stderr).not.toContain(value);
    expect(fs.readFileSync(file(), 'utf8')).toBe(before);
    // Its own editing keeps all of them.
    const edited = await home.svc(['env', 'edit', '--yes', '--app', application], {
      env: { VISUAL: `sed -i -e s/fine/better/` },
    });
    expect(edited).toMatchObject({ code: 0, stderr: expect.stringContaining('change  V0\n') });
    expect(edited.stderr).not.toContain('V1');
  });
});

test('a file that is too large for one request is refused with its size', async () => {
  fs.writeFileSync(file(), Array.from({ length: 10 }, (_, index) => `K${index}=${'x'.repeat(30_000)}\n`).join(''));
  expect(await svc(['push', '--yes'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/the request has 30\d{4} bytes, and the server takes 262144\.\nNothing was set\./),
  });
});

test('variables with which no program starts are refused with their sum, of every operation', async () => {
  await setAll([]);
  const put = (key: string, body: object) =>
    service.call('PUT', `/v2/applications/${application}/env/${key}`, { body });
  const value = 'x'.repeat(32_768);
  const room = Math.floor(limits.environmentBytesMax / (32_768 + 4));
  for (let index = 10; index < 10 + room; index += 1)
    expect((await put(`K${index}`, { value, available_at: index % 2 ? 'both' : 'runtime' })).status).toBe(201);
  const full = { status: 403, body: { code: 'quota_exceeded', resource: 'environment_bytes', limit: 1_000_000 } };
  expect(await put('LAST', { value })).toMatchObject({
    ...full,
    body: { ...full.body, used: expect.any(Number), detail: expect.stringMatching(/These have 10\d{5}\. Keep large/) },
  });
  expect((await put('BUILD', { value, available_at: 'build' })).status).toBe(201);
  expect(await put('BUILD', { value, available_at: 'both' })).toMatchObject(full);
  const many = await service.call('POST', '/graphql', {
    body: {
      query:
        'mutation ($id: ID!, $input: SetEnvironmentVariablesInput!) ' +
        '{ setEnvironmentVariables(id: $id, input: $input) { key } }',
      variables: { id: application, input: { variables: [{ key: 'LAST', value }] } },
    },
  });
  expect(many.body.errors[0].extensions).toMatchObject({ code: 'quota_exceeded', resource: 'environment_bytes' });
  expect((await service.call('GET', `/v2/applications/${application}/env/LAST`)).status).not.toBe(200);
  const env = Array.from({ length: room + 1 }, (_, index) => ({ key: `R${index}`, value }));
  const run = { command: 'true', env };
  expect((await service.call('POST', `/v2/applications/${application}/runs`, { body: run })).status).toBeGreaterThan(
    400,
  );
}, 60_000);
