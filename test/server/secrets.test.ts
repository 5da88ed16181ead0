// Everything secret is done once in a service that logs all it can. Then none of it may be found: not in the log, in no
// table, not in the activity, the metrics or the data directory.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Secret, TOTP } from 'otpauth';
import { mintId } from '../../core/ids';
import { hashPassword } from '../../core/accounts/passwords';
import { mintToken } from '../../core/accounts/tokens';
import { base, database, dataDir, firstKey } from '../support/contract/secret_cases';
import { program, SEALING, setUpSecrets, sql } from '../support/contract/secret_cases';

setUpSecrets();

const PASSWORD = 'kestrel-over-the-quarry-19';
const NEXT_PASSWORD = 'heron-under-the-viaduct-23';
const WRONG_PASSWORD = 'magpie-behind-the-brewery-31';

/** What must not be found, by what it is. */
const secrets = new Map<string, string>();

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
let cookie = '';

async function send(
  method: string,
  place: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: any }> {
  const raw = typeof body === 'string' ? body : body && JSON.stringify(body);
  const auth: Record<string, string> = cookie
    ? { Cookie: cookie }
    : { Authorization: `Bearer ${firstKey.key}`, 'X-Svc-Project': firstKey.project_id };
  const response = await fetch(base + place, {
    method,
    headers: { 'Content-Type': 'application/json', ...auth, ...headers },
    body: raw as string,
  });
  const set = response.headers.get('set-cookie');
  if (set && !set.includes('Max-Age=0')) storeCookie(set.split(';')[0] as string);
  const text = await response.text();
  return { status: response.status, body: text ? JSON.parse(text) : null };
}

function storeCookie(pair: string): void {
  cookie = pair;
  remember(`session ${secrets.size}`, pair.split('=')[1]);
}

const remember = (name: string, value: string | undefined): string => {
  if (!value || value.length < 8) throw new Error(`no value of ${name}`);
  secrets.set(name, value);
  return value;
};

async function graphql(query: string, variables: object = {}): Promise<any> {
  const { body } = await send('POST', '/graphql', { query, variables });
  if (body.errors) throw new Error(JSON.stringify(body.errors));
  return body.data;
}

const totp = (secret: string, offset = 0): string =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + offset * 30_000 });

const LOGIN = 'mutation ($input: LoginInput!) { login(input: $input) { user { id } } }';

/** A person who can log in, an owner of the first project. */
async function addPerson(email: string): Promise<void> {
  const { rows } = await sql.query<{ account_id: string }>('select account_id from users limit 1');
  const id = mintId('usr');
  await sql.query('insert into users (id, account_id, email, name, password_hash) values ($1, $2, $3, $4, $5)', [
    id,
    rows[0]?.account_id,
    email,
    'Person',
    await hashPassword(PASSWORD),
  ]);
  await sql.query(`insert into members (project_id, user_id, role) values ($1, $2, 'owner')`, [
    firstKey.project_id,
    id,
  ]);
}

test('variables, set on both faces, wrong and right', async () => {
  remember('the first key', firstKey.key);
  remember('password of the database', new URL(database.url).password);
  remember('sealing key', SEALING.toString('base64'));
  remember('variable', 'value-of-a-variable-77');
  remember('variable of GraphQL', 'value-by-graphql-78');
  remember('variable that is refused', 'value-that-is-refused-79');
  const { body: app } = await send('POST', '/v2/applications', { name: 'shop' });
  const place = `/v2/applications/${app.id}/env`;
  expect((await send('PUT', `${place}/DB_URL`, { value: secrets.get('variable') })).status).toBe(201);
  expect((await send('PUT', `${place}/DB_URL`, { value: secrets.get('variable') })).status).toBe(200);
  await graphql(
    `
      mutation ($id: ID!, $value: String!) {
        setEnvironmentVariable(id: $id, key: "OTHER", input: { value: $value }) {
          key
        }
      }
    `,
    { id: app.id, value: secrets.get('variable of GraphQL') },
  );
  expect((await send('GET', place)).body.data.map(({ value }: { value: string }) => value).sort()).toEqual(
    [secrets.get('variable of GraphQL'), secrets.get('variable')].sort(),
  );
  const refused = secrets.get('variable that is refused') as string;
  expect((await send('PUT', `${place}/DB_URL`, { value: refused.repeat(5_000) })).status).toBe(422);
  expect((await send('PUT', `${place}/not%20a%20key`, { value: refused })).status).toBeGreaterThanOrEqual(400);
  expect((await send('PUT', `${place}/DB_URL`, `{"value": "${refused}`)).status).toBe(400);
  expect((await send('GET', `${place}?token=${refused}&limit=${refused}`)).status).toBe(400);
  expect(
    (
      await send('POST', '/graphql', {
        query: `mutation { setEnvironmentVariable(id: "${app.id}", key: "A", input: {value: "${refused}", oops: 1}) {
          key } }`,
      })
    ).status,
  ).toBe(400);
  // An error of the inside, in the middle of a write.
  await sql
    .query('alter table environment_variables rename column value_hash to away')
    .catch(() => sql.query('alter table environment_variables rename to away'));
  expect((await send('PUT', `${place}/DB_URL`, { value: refused })).status).toBe(500);
  expect(
    (
      await send('POST', '/graphql', {
        query: `mutation ($id: ID!, $value: String!) { setEnvironmentVariable(id: $id, key: "OTHER",
            input: {value: $value}) { key } }`,
        variables: { id: app.id, value: refused },
      })
    ).status,
  ).toBe(500);
  await sql
    .query('alter table environment_variables rename column away to value_hash')
    .catch(() => sql.query('alter table away rename to environment_variables'));
  expect((await send('GET', place)).status).toBe(200);
});

test('wrong tokens', async () => {
  const unknown = remember('a token of nobody', mintToken('personal').token);
  const broken = remember('a token with a typo', `${mintToken('personal').token}x`);
  for (const token of [unknown, broken]) {
    expect((await send('GET', '/v2/me', undefined, { Authorization: `Bearer ${token}` })).status).toBe(401);
    expect(
      (await send('POST', '/graphql', { query: '{ getMe { user { id } } }' }, { Authorization: `Bearer ${token}` }))
        .status,
    ).toBe(401);
    expect((await send('GET', `/v2/volumes/${token}?key=${token}`)).status).toBe(404);
    expect((await send('GET', `/nowhere/${token}`)).status).toBe(404);
  }
  await send('GET', '/v2/me', undefined, {
    Authorization: `Basic ${Buffer.from(`x:${remember('basic password', 'password-of-basic-80')}`).toString('base64')}`,
  });
});

test('log-in, keys, invitations, two-factor', async () => {
  await addPerson('person@example.com');
  remember('password', PASSWORD);
  remember('next password', NEXT_PASSWORD);
  remember('wrong password', WRONG_PASSWORD);
  const login = (password: string, code?: string): ReturnType<typeof send> =>
    send('POST', '/graphql', { query: LOGIN, variables: { input: { email: 'person@example.com', password, code } } });
  cookie = 'none=1';
  expect((await login(WRONG_PASSWORD)).body.errors[0].extensions.code).toBe('credentials_invalid');
  expect((await login(PASSWORD)).body.errors).toBeUndefined();
  const project = firstKey.project_id;
  const personal = await graphql('mutation { createPersonalKey(input: {name: "CI", scopes: ["read"]}) { token } }');
  remember('personal key', personal.createPersonalKey.token);
  const ofProject = await graphql(
    'mutation ($project: ID!) { createProjectKey(project_id: $project, input: {name: "CI"}) { token } }',
    { project },
  );
  remember('project key', ofProject.createProjectKey.token);
  const invited = await graphql(
    `
      mutation ($project: ID!) {
        inviteMember(project_id: $project, input: { email: "guest@example.com", role: viewer }) {
          token
        }
      }
    `,
    { project },
  );
  remember('invitation', invited.inviteMember.token);
  const { enrolTwoFactor } = await graphql(
    'mutation ($password: String!) { enrolTwoFactor(password: $password) { secret otpauth_url } }',
    { password: PASSWORD },
  );
  const secret = remember('two-factor secret', enrolTwoFactor.secret);
  const { confirmTwoFactor } = await graphql('mutation ($code: String!) { confirmTwoFactor(code: $code) { codes } }', {
    code: totp(secret),
  });
  for (const [index, code] of (confirmTwoFactor.codes as string[]).entries()) remember(`recovery code ${index}`, code);
  await graphql('mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { active_keys { id } } }', {
    input: { password: PASSWORD, new_password: NEXT_PASSWORD },
  });
  cookie = 'none=1';
  expect((await login(NEXT_PASSWORD)).body.errors[0].extensions.code).toBe('two_factor_required');
  expect((await login(NEXT_PASSWORD, confirmTwoFactor.codes[0])).body.errors).toBeUndefined();
  for (const name of ['personal key', 'project key'])
    expect((await send('GET', '/v2/me', undefined, { Authorization: `Bearer ${secrets.get(name)}` })).status).toBe(200);
  cookie = 'none=1';
  const accepted = await send('POST', '/graphql', {
    query: 'mutation ($input: AcceptInvitationInput!) { acceptInvitation(input: $input) { user { id } } }',
    variables: {
      input: {
        token: secrets.get('invitation'),
        name: 'Guest',
        password: remember('password of the guest', 'wren-inside-the-lighthouse-41'),
      },
    },
  });
  expect(accepted.body.errors).toBeUndefined();
});

/** As it is, and as it would look encoded. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), bytes.toString('hex')];
  // Base64 of a longer text holds that of the secret at one of three places; the ends depend on what is beside it.
  for (const lead of [0, 1, 2])
    forms.push(
      Buffer.concat([Buffer.alloc(lead), bytes])
        .toString('base64')
        .replace(/=+$/, '')
        .slice(lead ? 4 : 0, -2),
    );
  return forms;
}

function found(text: string): string[] {
  const lower = text.toLowerCase();
  return [...secrets]
    .filter(([, secret]) => formsOf(secret).some((form) => form.length >= 8 && lower.includes(form.toLowerCase())))
    .map(([name]) => name);
}

describe('none of it is found', () => {
  it('by a search that would find it', () => {
    expect(secrets.size).toBeGreaterThan(25);
    for (const [name, secret] of secrets) {
      expect(found(`x ${secret} y`)).toContain(name);
      expect(found(Buffer.from(`a longer text with ${secret} in it`).toString('base64'))).toContain(name);
    }
  });

  it('in the log', async () => {
    await sleep(300);
    // The first key is told once, as text, which is no line of the log.
    const lines = program
      .out()
      .split('\n')
      .filter((line) => line.startsWith('{'));
    expect(lines.length).toBeGreaterThan(30);
    expect(lines.some((line) => line.includes('"level":"error"'))).toBe(true);
    expect(found(lines.join('\n'))).toEqual([]);
    expect(program.err()).toBe('');
  });

  it('in any table', async () => {
    const { rows } = await sql.query<{ name: string }>(
      `select table_name as name from information_schema.tables
        where table_schema = 'public' and table_type = 'BASE TABLE'`,
    );
    expect(rows.length).toBeGreaterThan(15);
    let size = 0;
    for (const { name } of rows) {
      const { rows: values } = await sql.query<{ text: string }>(`select to_jsonb(t)::text as text from "${name}" t`);
      const text = values.map((row) => row.text).join('\n');
      size += text.length;
      expect([name, found(text)]).toEqual([name, []]);
    }
    expect(size).toBeGreaterThan(5_000);
  });

  it('in the activity and the metrics', async () => {
    cookie = '';
    const { body } = await send('GET', `/v2/projects/${firstKey.project_id}/activity?limit=100`);
    expect(body.data.length).toBeGreaterThan(5);
    expect(found(JSON.stringify(body))).toEqual([]);
    const port = /"admin_port":(\d+)/.exec(program.out())?.[1];
    const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(metrics).toContain('platform_requests_total');
    expect(metrics).toContain('platform_networks{network="shared",way_out="true"} 1');
    expect(found(metrics)).toEqual([]);
  });

  it('in the data directory, but for the first key where it is told', () => {
    const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    expect(files.map(({ name }) => name)).toContain('first-key.json');
    for (const file of files) {
      const text = readFileSync(path.join(file.parentPath, file.name), 'latin1');
      expect([file.name, found(text)]).toEqual([file.name, file.name === 'first-key.json' ? ['the first key'] : []]);
    }
  });
});
