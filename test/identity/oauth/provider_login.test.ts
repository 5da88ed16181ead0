// Logins at another provider: whose they become, two-factor, linking and unlinking. The provider is oidc-provider.
import { randomBytes } from 'node:crypto';
import { loadConfig } from '../../../core/config';
import { newUser, PASSWORD } from '../../support/identity/browser';
import { startService, type TestService } from '../../support/service';
import { openForeignProvider, pressProvider, type ForeignProvider } from './foreign_provider';
import { openClient } from './client';
import { logIn, newPerson, visitor, type Page, type Person } from '../../support/identity/person';

/* oxlint-disable-next-line typescript/no-explicit-any -- answers are whatever the service sends */
type Data = any;
type Visitor = Pick<Person, 'open' | 'submit' | 'cookies'>;

const LINKED = '/account/logins';

let provider: ForeignProvider;
let service: TestService;

beforeAll(async () => {
  provider = await openForeignProvider();
  service = await startService({ settings: provider.settings() });
});
afterAll(async () => {
  await service.close();
  await provider.close();
});

const newEmail = (): string => `${randomBytes(6).toString('hex')}@example.com`;

/** Through the button of the login page, the provider's pages, and back. */
async function logInThere(browser: Visitor, id: string, page?: Page): Promise<Page> {
  const from = page ?? (await browser.open(`${service.url}/login?return_to=/account/logins`));
  const { url } = await pressProvider(browser, from, 'keycloak');
  return browser.open(await provider.logIn(url, id));
}

async function invite(email: string): Promise<string> {
  const owner = visitor(service);
  const user = { id: '', email: newEmail(), ...owner };
  await newUser(service, user.email, 'owner');
  await logInWithPassword(user);
  const query = `mutation ($p: ID!, $i: InviteMemberInput!) { inviteMember(project_id: $p, input: $i) { token } }`;
  const input = { p: service.project, i: { email, role: 'developer' } };
  const { data } = await service.graphql(query, input, { key: null, project: null, cookie: await owner.cookies() });
  return data.inviteMember.token;
}

async function logInWithPassword(person: Person): Promise<Page> {
  return logIn(person, await person.open(`${service.url}/login?return_to=${LINKED}`));
}

/** Links from the page of a person who is logged in. */
async function linkThere(person: Person, id: string, password = PASSWORD): Promise<Page> {
  const page = await person.open(`${service.url}${LINKED}`);
  const begun = await pressProvider(person, page, 'keycloak', { password });
  return begun.url ? person.open(await provider.logIn(begun.url, id)) : begun.page;
}

describe('a login that is linked to nobody', () => {
  it('becomes the user of an invited person, who then accepts', async () => {
    const email = newEmail();
    const token = await invite(email);
    provider.people.set(email, { email: email.toUpperCase(), email_verified: true, name: 'Ada' });
    const browser = visitor(service);
    const invitation = await browser.open(`${service.url}/account/invitation?token=${token}`);
    const back = await logInThere(browser, email, invitation);
    expect(back.title).toBe('Invitation');
    const accepted = await browser.submit(back, {});
    expect(accepted.html).toContain('You are a member of the project now');
    const [user] = await service.sql('select * from users where email = $1', [email]);
    expect(user).toMatchObject({ name: 'Ada', password_hash: null, email_confirmed_at: expect.anything() });
    const actions = await service.sql('select action from activity where actor_id = $1 order by id', [user.id]);
    expect(actions.map(({ action }) => action)).toEqual(['session.created', 'login.linked', 'member.joined']);
    // From now on the provider's id says who it is, whatever the address.
    provider.people.set(email, { email: 'other@example.com', email_verified: false });
    expect((await logInThere(visitor(service), email)).html).toContain(`You are logged in as ${email}.`);
  });

  it('is refused where nobody has invited the address, or nobody has verified it', async () => {
    const [stranger, unverified] = [newEmail(), newEmail()];
    provider.people.set(stranger, { email: stranger, email_verified: true });
    expect(await logInThere(visitor(service), stranger)).toMatchObject({
      ...{ status: 403, html: expect.stringContaining('is invited. Ask an owner') },
    });
    await invite(unverified);
    provider.people.set(unverified, { email: unverified, email_verified: false });
    const browser = visitor(service);
    expect((await logInThere(browser, unverified)).html).toContain('did not confirm your e-mail address');
    expect(await browser.cookies()).not.toContain('platform_session');
    expect(await service.sql('select 1 from users where email = any($1)', [[stranger, unverified]])).toEqual([]);
  });

  it.each(['\u212Bke@example.com', 'not an address', ''])('is refused for the address %j', async (email) => {
    const id = newEmail();
    provider.people.set(id, { email, email_verified: true });
    expect((await logInThere(visitor(service), id)).status).toBe(403);
  });

  it('does not become a user who has a password, until that user links it', async () => {
    const person = await newPerson(service, newEmail());
    provider.people.set(person.email, { email: person.email, email_verified: true });
    const refused = await logInThere(visitor(service), person.email);
    expect(refused).toMatchObject({ status: 403, html: expect.stringContaining('is not linked to it') });
    await logInWithPassword(person);
    expect((await linkThere(person, person.email, 'wrong')).html).toContain('The password is wrong.');
    const linked = await linkThere(person, person.email);
    expect(linked.html).toContain(`Keycloak, ${person.email}`);
    expect((await logInThere(visitor(service), person.email)).html).toContain(`logged in as ${person.email}`);
  });

  it('becomes a user whom the operator has let be linked, once', async () => {
    const { id, email } = await newUser(service, newEmail());
    await service.sql(`update users set link_by_email_until = now() + interval '1 day' where id = $1`, [id]);
    for (const one of [`${email} first`, `${email} second`]) provider.people.set(one, { email, email_verified: true });
    expect((await logInThere(visitor(service), `${email} first`)).html).toContain(`logged in as ${email}`);
    expect((await logInThere(visitor(service), `${email} second`)).status).toBe(403);
  });

  it('becomes a user without a password, such as the first owner, once of several at the same time', async () => {
    const { email } = await newUser(service, newEmail());
    await service.sql('update users set password_hash = null where email = $1', [email]);
    const ids = [1, 2, 3].map((n) => `${email} ${n}`);
    for (const id of ids) provider.people.set(id, { email, email_verified: true });
    const pages = await Promise.all(ids.map((id) => logInThere(visitor(service), id)));
    expect(pages.filter(({ html }) => html.includes(`You are logged in as ${email}.`))).toHaveLength(1);
    expect(await service.sql(`select 1 from linked_logins where email = $1`, [email])).toHaveLength(1);
  });
});

describe('linking', () => {
  it('is for one user, also when two ask at the same time', async () => {
    const people = await Promise.all([1, 2].map(() => newPerson(service, newEmail())));
    const id = newEmail();
    provider.people.set(id, { email: id, email_verified: true });
    for (const person of people) await logInWithPassword(person);
    const pages = await Promise.all(people.map((person) => linkThere(person, id)));
    expect(pages.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(await service.sql('select 1 from linked_logins where subject = $1', [id])).toHaveLength(1);
  });

  it('ends with the session that asked for it', async () => {
    const person = await newPerson(service, newEmail());
    provider.people.set(person.email, { email: person.email, email_verified: true });
    await logInWithPassword(person);
    const { url } = await pressProvider(person, await person.open(`${service.url}${LINKED}`), 'keycloak', {
      password: PASSWORD,
    });
    const back = await provider.logIn(url, person.email);
    await logInWithPassword(person);
    expect((await person.open(back)).status).toBe(401);
    expect(await service.sql('select 1 from linked_logins where user_id = $1', [person.id])).toEqual([]);
  });

  it('is taken back, but not the last way to log in', async () => {
    const person = await newPerson(service, newEmail());
    provider.people.set(person.email, { email: person.email, email_verified: true });
    await logInWithPassword(person);
    const linked = await linkThere(person, person.email);
    await service.sql('update users set password_hash = null where id = $1', [person.id]);
    const kept = await person.submit(linked, { action: 'unlink' });
    expect(kept).toMatchObject({ status: 409, html: expect.stringContaining('your last way to log in') });
    await service.sql(
      `insert into linked_logins (id, user_id, provider, issuer, subject)
        values ($1, $2, 'gone', 'https://gone.example.com', $2)`,
      [`lgn_${person.id.slice(4)}`, person.id],
    );
    // A provider that is not configured any more is no way to log in.
    expect((await person.submit(linked, { action: 'unlink' })).status).toBe(409);
    await service.sql('update users set password_hash = $2 where id = $1', [person.id, 'x']);
    const gone = await person.submit(linked, { action: 'unlink' });
    expect(gone.html).not.toContain(`Keycloak, ${person.email}`);
    const [other] = [await newPerson(service, newEmail())];
    await logInWithPassword(other);
    expect((await other.submit({ ...linked }, { action: 'unlink' })).status).toBe(404);
  });
});

describe('two-factor', () => {
  const query = {
    enrol: 'mutation ($p: String!) { enrolTwoFactor(password: $p) { secret } }',
    confirm: 'mutation ($c: String!) { confirmTwoFactor(code: $c) { codes } }',
  };

  it('is asked for here, in the browser that began', async () => {
    const person = await newPerson(service, newEmail());
    provider.people.set(person.email, { email: person.email, email_verified: true });
    await logInWithPassword(person);
    await linkThere(person, person.email);
    const cookie = await person.cookies();
    const run = (text: string, variables: object): Promise<Data> =>
      service.graphql(text, variables as never, { key: null, project: null, cookie });
    const { Secret, TOTP } = await import('otpauth');
    const { secret } = (await run(query.enrol, { p: PASSWORD })).data.enrolTwoFactor;
    const totp = new TOTP({ secret: Secret.fromBase32(secret) });
    const { codes } = (await run(query.confirm, { c: totp.generate() })).data.confirmTwoFactor;
    const browser = visitor(service);
    const asks = await logInThere(browser, person.email);
    expect(asks.title).toBe('Two-factor code');
    expect(await browser.cookies()).not.toContain('platform_session');
    expect((await browser.submit(asks, { code: '000000' })).status).toBe(401);
    // In another browser the page is worth nothing.
    expect((await visitor(service).submit(asks, { code: codes[0] })).status).toBe(404);
    const inside = await browser.submit(asks, { code: codes[0] });
    expect(inside.html).toContain(`You are logged in as ${person.email}.`);
    expect((await browser.submit(asks, { code: codes[1] })).status).toBe(404);
  });
});

it('a program that asks for a person is answered through the provider', async () => {
  const person = await newPerson(service, newEmail(), 'owner');
  provider.people.set(person.email, { email: person.email, email_verified: true });
  await logInWithPassword(person);
  await linkThere(person, person.email);
  const client = await openClient(service);
  const browser = visitor(service);
  const asked = await client.ask();
  const consent = await logInThere(browser, person.email, await browser.open(asked.url));
  expect(consent.title).toContain('Allow Command line');
  const tokens = await client.redeem(asked, await browser.submit(consent, { action: 'allow' }));
  expect(tokens.access_token).toMatch(/^svc_oauth_/);
});

it('an account that is suspended stays outside', async () => {
  const person = await newPerson(service, newEmail());
  provider.people.set(person.email, { email: person.email, email_verified: true });
  await logInWithPassword(person);
  await linkThere(person, person.email);
  await service.sql(
    `update accounts set status = 'suspended' where id = (select account_id from users where id = $1)`,
    [person.id],
  );
  expect((await logInThere(visitor(service), person.email)).status).toBe(403);
});

describe('LOGIN_PASSWORD=off', () => {
  it('does not start without another provider, and names what is missing of one', () => {
    expect(() => loadConfig({ LOGIN_PASSWORD: 'off' })).toThrow('nobody could log in');
    const google = { LOGIN_GOOGLE_ISSUER: 'http://accounts.example.com', LOGIN_GOOGLE_TYPE: 'x' };
    const wrong = { LOGIN_PASSWORD: 'off', ...google };
    expect(() => loadConfig(wrong)).toThrow(
      /LOGIN_GOOGLE_CLIENT_ID is missing; LOGIN_GOOGLE_CLIENT_SECRET is missing; .*_ISSUER is malformed.*_TYPE/,
    );
  });

  it('refuses passwords everywhere, and two-factor is still set up', async () => {
    const closed = await startService({ settings: { ...provider.settings(), LOGIN_PASSWORD: 'off' } });
    try {
      const { email } = await newUser(closed, newEmail());
      const login = await visitor(closed).open(`${closed.url}/login`);
      expect(login.html).not.toContain('type="password"');
      const run = async (text: string, variables: object, cookie?: string): Promise<Data> =>
        closed.graphql(text, variables as never, { key: null, project: null, ...(cookie && { cookie }) });
      const refused = async (text: string, variables: object): Promise<unknown> =>
        (await run(text, variables)).errors[0].message;
      const sentence = 'This installation does not accept passwords. Log in with Keycloak.';
      const input = { i: { email, password: PASSWORD } };
      expect(await refused('mutation ($i: LoginInput!) { login(input: $i) { user { id } } }', input)).toBe(sentence);
      expect(await refused('mutation ($e: String!) { requestPasswordReset(input: {email: $e}) }', { e: email })).toBe(
        sentence,
      );
      expect(
        await refused('mutation ($i: ResetPasswordInput!) { resetPassword(input: $i) }', {
          i: { token: 'pwr_x', new_password: PASSWORD },
        }),
      ).toBe(sentence);
      // The first owner has no password: the login with their address is theirs.
      const browser = visitor(closed);
      provider.people.set('owner', { email: 'owner@example.com', email_verified: true });
      const { url } = await pressProvider(browser, await browser.open(`${closed.url}/login`), 'keycloak', {
        return_to: LINKED,
      });
      expect((await browser.open(await provider.logIn(url, 'owner'))).html).toContain('logged in as owner@example.com');
      const enrol = 'mutation { enrolTwoFactor(password: "") { secret } }';
      const cookie = await browser.cookies();
      expect((await run(enrol, {}, cookie)).data.enrolTwoFactor.secret).toEqual(expect.any(String));
      await closed.sql(`update sessions set created_at = created_at - interval '16 minutes'`);
      await closed.sql(`select pg_notify('forget', '{"user_id":"*"}')`);
      const methods = await run('{ loginMethods { password providers { name title } } }', {});
      expect(methods.data.loginMethods).toEqual({
        ...{ password: false, providers: [{ name: 'keycloak', title: 'Keycloak' }] },
      });
    } finally {
      await closed.close();
    }
  });
});
