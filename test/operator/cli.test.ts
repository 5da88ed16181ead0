/** @tier heavy @quarter 1 @covers server/operator */
/** @user any */
// The operator's command as a real process, on an embedded database of its own, beside a running service.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readSource } from '../support/runner/repository';
import { dataDir, first, json, run, setUpCommand } from '../support/processes/operator_command';

setUpCommand();

async function get(place: string, key: string, project?: string): Promise<number> {
  const headers: Record<string, string> = {
    Authorization: `Bearer ${key}`,
    ...(project && { 'X-Svc-Project': project }),
  };
  return (await fetch(first.base_url + place, { headers })).status;
}

async function logIn(email: string, password: string): Promise<string | undefined> {
  const query = 'mutation ($input: LoginInput!) { login(input: $input) { user { id } } }';
  const answer = await fetch(`${first.base_url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query, variables: { input: { email, password } } }),
  });
  const { errors } = (await answer.json()) as { errors?: { extensions: { code: string } }[] };
  return errors?.[0]?.extensions.code;
}

const all = { projects: [] as string[] };

test('the first user gets a password from standard input and can log in', async () => {
  const [{ email }] = (await json(['user', 'list'])).data;
  expect(email).toBe('owner@example.com');
  expect(await logIn(email, 'correct horse battery')).toBe('credentials_invalid');
  expect(
    (await run(['user', 'password', '--email', email, '--password-stdin'], { input: 'correct horse battery\n' })).out,
  ).not.toContain('correct horse');
  expect(await logIn(email, 'correct horse battery')).toBeUndefined();
  const short = await run(['user', 'password', '--email', email, '--password-stdin'], { input: 'short\n' });
  expect([short.code, short.err]).toEqual([1, 'platform: the password must have at least 12 characters\n']);
  expect(await logIn(email, 'correct horse battery')).toBeUndefined();
});

test('a new user gets a password that is shown once, and owns a new project', async () => {
  const {
    data: [user],
    password,
  } = await json(['user', 'create', '--email', 'Second@Example.com', '--name', 'Second']);
  expect(user).toMatchObject({ email: 'second@example.com', name: 'Second', id: expect.stringMatching(/^usr_/) });
  expect(await logIn('second@example.com', password)).toBeUndefined();
  const again = await run(['user', 'create', '--email', 'second@example.com']);
  expect([again.code, again.err]).toEqual([1, 'platform: there is a user second@example.com already\n']);
  const {
    data: [project],
  } = await json(['project', 'create', '--user', 'second@example.com', '--name', 'Web shop']);
  expect(project).toMatchObject({ name: 'Web shop', account_id: user.account_id });
  all.projects.push(project.id);
  expect((await json(['project', 'list'])).data.map(({ id }: { id: string }) => id)).toEqual([
    first.project_id,
    project.id,
  ]);
  expect(JSON.stringify(await json(['user', 'list']))).not.toContain('scrypt');
});

test('keys of users work in the running service until they are revoked there', async () => {
  const {
    data: [key],
    token,
  } = await json([
    'key',
    'create',
    '--user',
    'second@example.com',
    '--scopes',
    'read',
    '--expires',
    '30d',
    '--projects',
    all.projects[0] as string,
  ]);
  expect(key).toMatchObject({ kind: 'personal', scopes: ['read'], project_ids: all.projects });
  expect(Date.parse(key.expires_at)).toBeGreaterThan(Date.now() + 29 * 86_400_000);
  expect(await get('/v2/volumes', token, all.projects[0])).toBe(200);
  expect(await get('/v2/volumes', token, first.project_id)).toBe(403);
  expect((await json(['key', 'revoke', key.id])).data).toEqual([{ id: key.id, revoked: true }]);
  expect(await get('/v2/volumes', token, all.projects[0])).toBe(401);
  const again = await run(['key', 'revoke', key.id]);
  expect([again.code, again.err]).toEqual([1, `platform: there is no key ${key.id}\n`]);
});

test('keys of projects too, and the list shows no values', async () => {
  const {
    data: [key],
    token,
  } = await json(['key', 'create', '--project', first.project_id, '--name', 'CI']);
  expect(key).toMatchObject({ kind: 'project', name: 'CI', project_id: first.project_id, may_destroy: true });
  const {
    data: [careful],
  } = await json(['key', 'create', '--project', first.project_id, '--name', 'Backups', '--no-delete']);
  expect(careful).toMatchObject({ name: 'Backups', may_destroy: false });
  expect(await get('/v2/volumes', token)).toBe(200);
  const { out } = await run(['key', 'list', '--project', first.project_id]);
  expect(out).toContain(key.id);
  expect(out).not.toContain(token);
  expect(out).not.toContain(first.key);
});

test.each([
  [['env', 'list', 'app_none'], 'there is no application app_none'],
  [['env', 'set', 'app_none', 'A=1'], 'there is no application app_none'],
  [['env', 'set', 'app_none', '--file', '/nowhere/.env'], '/nowhere/.env cannot be read: ENOENT'],
  [['key', 'create', '--user', 'nobody@example.com'], 'there is no user nobody@example.com'],
  [['key', 'create', '--project', 'prj_none'], 'there is no project prj_none'],
  [['setup', '--domain', 'https://example.com/'], '--domain takes a domain alone'],
  [['key', 'create', '--user', 'owner@example.com', '--scopes', 'read,root'], 'scopes.1 must be one of'],
  [
    ['key', 'create', '--user', 'owner@example.com', '--projects', 'prj_none'],
    'The key can only be restricted to projects',
  ],
  [
    ['project', 'create', '--user', 'owner@example.com', '--name', 'x', '--region', 'moon'],
    'names no available region',
  ],
])('%j can not be done: one line, exit code 1', async (args, reason) => {
  const { code, out, err } = await run(args);
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(/^platform: .*\n$/);
  expect(err).toContain(reason);
});

test.each([
  [['nonsense'], 'unknown command nonsense'],
  [['\u001b]0;mine\u0007\u009b2J'], 'unknown command ?]0;mine??2J'],
  [['docter'], 'unknown command docter; did you mean doctor?'],
  [['usre', 'list', '--json'], 'unknown command usre list; did you mean user list?'],
  [['key', 'crate', '--user', 'a@example.com'], 'unknown command key crate; did you mean key create?'],
  [['project'], 'unknown command project; did you mean project create or project list?'],
  [['--token', 'secret'], 'unknown option --token;'],
  [['user', 'create'], 'user create needs --email'],
  [['user', 'create', '--email', 'no address'], 'is not an e-mail address'],
  [['user', 'create', '--email', 'a@example.com', '--password', 'secret'], '--password'],
  [['key', 'create'], 'either --user or --project'],
  [['key', 'create', '--user', 'a@example.com', '--expires', 'soon'], 'neither a time nor a number of days'],
  [['key', 'revoke'], 'needs one key id'],
  [['env', 'set', 'app_none'], 'needs KEY=VALUE or a --file'],
  [['env', 'set', 'app_none', 'A=1', 'nothing'], 'argument 2 behind the application is not KEY=VALUE'],
  [['user', 'list', 'more'], 'takes no more'],
  [['setup'], 'setup needs --domain'],
  [['setup', '--domain', 'example.com', '--ip', 'here'], '--ip here is not an IP address'],
  [['setup', '--domain', 'example.com', '--email', 'ops'], '--email ops is not an e-mail address'],
])('%j is a wrong command line: exit code 2', async (args, reason) => {
  const { code, out, err } = await run(args);
  expect([code, out]).toEqual([2, '']);
  expect(err).toContain(reason);
});

test('--version is that of the package', async () => {
  const { version } = JSON.parse(readSource('package.json')) as { version: string };
  for (const words of [['--version'], ['version']])
    expect(await run(words)).toMatchObject({ code: 0, out: `${version}\n` });
});

test('help names every command', async () => {
  const { code, out } = await run(['--help']);
  expect(code).toBe(0);
  for (const name of [
    'user create',
    'user list',
    'key create',
    'key list',
    'key revoke',
    'project create',
    'project list',
    'env set',
    'env list',
    'routes',
    'doctor',
  ])
    expect(out).toContain(`  ${name} `);
  expect((await run([])).out).toBe(out);
  expect((await run(['key', 'create', '--help'])).out).toContain('--scopes <list>');
});

test('routes lists the operations without a database', async () => {
  const { code, out } = await run(['routes', '--json'], {
    settings: { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' },
  });
  expect(code).toBe(0);
  expect(JSON.parse(out).data).toContainEqual({
    method: 'GET',
    path: '/v2/volumes/{id}',
    operation: 'getVolume',
    scope: 'read',
    group: 'Volumes',
  });
});

test('doctor finds everything in order beside the running service', async () => {
  const { port } = new URL(first.base_url);
  const { code, out } = await run(['doctor', '--json'], { settings: { PORT: port } });
  const found = Object.fromEntries(
    JSON.parse(out).data.map(({ check, status, detail }: Record<string, string>) => [check, { status, detail }]),
  );
  expect(found).toMatchObject({
    settings: { status: 'ok' },
    'data directory': { status: 'ok' },
    'secret key': { status: 'ok' },
    database: { status: 'ok', detail: expect.stringMatching(/^PostgreSQL \d+.* answers \(embedded\)$/) },
    migrations: { status: 'ok' },
    isolation: {
      detail: expect.stringMatching(
        /^sandbox \w+, .*, disks of instances and databases (limited|measured), process_limit (unit|user|monitor) \(/,
      ),
    },
    'networks of projects': {
      detail: expect.stringMatching(/^(work, made by (root|user)|none: all projects share that of the host\. .)/),
    },
    port: { status: 'ok', detail: `a running service answers at 127.0.0.1:${port}` },
  });
  expect(code).toBe(0);
});

test('doctor says what is wrong, and its exit code too', async () => {
  const database = await run(['doctor', '--json'], {
    settings: { DATABASE_URL: 'postgres://nobody:hush@127.0.0.1:1/none' },
  });
  expect(database.code).toBe(1);
  expect(JSON.parse(database.out).data).toContainEqual({
    check: 'database',
    status: 'failed',
    detail: expect.any(String),
  });
  expect(database.out).not.toContain('hush');
  const other = path.join(dataDir, 'other');
  const malformed = await run(['doctor', '--json'], { settings: { PLATFORM_DATA_DIR: writeKey(other, 'not a key') } });
  expect(malformed.code).toBe(1);
  expect(JSON.parse(malformed.out).data).toContainEqual({
    check: 'secret key',
    status: 'failed',
    detail: expect.stringContaining('is malformed'),
  });
  const store = { BACKUP_STORE: 's3://no', BACKUP_STORE_URL: 'http://127.0.0.1:9' };
  const keys = { BACKUP_STORE_ACCESS_KEY: 'NOBODY', BACKUP_STORE_SECRET_KEY: 'hush-hush' };
  const bucketless = await run(['doctor', '--json'], { settings: { ...store, ...keys } });
  expect(bucketless.code).toBe(1);
  const detail = 'BACKUP_STORE is malformed: "s3://no" (expected s3://bucket/folder)';
  expect(bucketless.err).toContain(detail);
  const away = await run(['doctor', '--json'], { settings: { ...store, BACKUP_STORE: 's3://backups/here', ...keys } });
  expect(JSON.parse(away.out).data).toContainEqual({
    check: 'backup store',
    status: 'failed',
    detail: 'The backup store does not respond.',
  });
  expect(away.out + away.err).not.toContain('hush-hush');
  const keyless = await run(['doctor', '--json'], { settings: { ...store, BACKUP_STORE: 's3://backups' } });
  expect(JSON.parse(keyless.out).data).toContainEqual({
    check: 'backup store',
    status: 'failed',
    detail: 'BACKUP_STORE is set, and BACKUP_STORE_ACCESS_KEY or BACKUP_STORE_SECRET_KEY is not; set both',
  });
  const unknown = await run(['doctor'], { settings: { PLATFORM_NONSENSE: '1' } });
  expect([unknown.code, unknown.err]).toEqual([1, 'platform: PLATFORM_NONSENSE is not a setting\n']);
});

test('probes get a key for their region, which works in the running service until it is revoked', async () => {
  const ask = (key: string): Promise<Response> =>
    fetch(`${first.base_url}/probe/checks`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
      body: JSON.stringify({ limit: 0, kinds: ['http'], suspended: false }),
    });
  const { data, token } = await json(['probe', 'create', '--region', 'eu-west']);
  expect([data[0].region, data[0].name, token]).toEqual(['eu-west', 'eu-west', expect.stringMatching(/^svc_probe_/)]);
  expect(await (await ask(token)).json()).toEqual({ region: 'eu-west', checks: [] });
  const listed = await json(['probe', 'list']);
  expect(listed.data).toEqual([{ ...data[0], checks: ['http'], seen_at: expect.any(String) }]);
  expect(JSON.stringify(listed)).not.toContain(token);
  await json(['probe', 'revoke', data[0].id]);
  expect((await ask(token)).status).toBe(401);
  const refused = [['--region', 'local'], ['--region', 'No Region'], [], ['--region', 'eu-west', '--name', '']];
  const codes = await Promise.all(refused.map(async (words) => (await run(['probe', 'create', ...words])).code));
  expect(codes).toEqual([1, 2, 2, 2]);
});

function writeKey(directory: string, text: string): string {
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, 'secret-key'), text, { mode: 0o600 });
  return directory;
}

test('an unreachable database is one line', async () => {
  const { code, out, err } = await run(['user', 'list'], {
    settings: { DATABASE_URL: 'postgres://nobody:hush@127.0.0.1:1/none' },
  });
  expect([code, out]).toEqual([1, '']);
  expect(err).toBe('platform: the database does not answer: connect ECONNREFUSED 127.0.0.1:1\n');
});
