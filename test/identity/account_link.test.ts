// Links that the platform mails to people: a new password, a confirmed address, an invitation.
import { simpleParser } from 'mailparser';
import { freePort } from '../support/processes/free_port';
import { withinOneMinute } from '../support/processes/within_one_minute';
import { startService, type TestService } from '../support/service';
import { browser, newBrowser, newUser, PASSWORD } from '../support/identity/browser';
import { retryCheck } from '../support/wait_for';

let service: TestService;
beforeAll(async () => {
  service = await startService({
    worker: true,
    settings: { SMTP_PORTS: String(await freePort()), RATE_LIMIT_FAILED_AUTH: '20' },
  });
});
afterAll(() => service.close());

const REQUEST = 'mutation ($email: String!) { requestPasswordReset(input: {email: $email}) }';
const RESET = `mutation ($token: String!, $new: String!) {
  resetPassword(input: {token: $token, new_password: $new}) }`;
const CONFIRM = 'mutation ($token: String!) { confirmEmail(token: $token) }';
const NEXT_PASSWORD = 'a password that is newer';

interface Mail {
  subject: string;
  text: string;
  html: string;
  link: string;
}

/** Mails to an address that have come so far, the oldest first. */
async function mailsTo(address: string): Promise<Mail[]> {
  const rows = await service.sql(
    `select message_id from email_deliveries where recipient = $1 and status = 'kept' order by message_id`,
    [address],
  );
  return Promise.all(
    rows.map(async ({ message_id }: { message_id: string }) => {
      const page = await (await fetch(`${service.adminUrl}/mail/${message_id}`)).text();
      const { subject = '', text = '', html } = await simpleParser(page.slice(page.indexOf('Received:')));
      return { subject, text, html: String(html), link: /http:\S+/.exec(text)?.[0] ?? '' };
    }),
  );
}

async function mailTo(address: string, subject: string, count = 1): Promise<Mail> {
  let found: Mail[] = [];
  await retryCheck(async () => {
    found = (await mailsTo(address)).filter((mail) => mail.subject === subject);
    expect(found).toHaveLength(count);
  });
  return found[count - 1] as Mail;
}

/** Until the host has worked off all that was asked for. */
const outboxIsEmpty = (): Promise<void> =>
  retryCheck(async () => expect(await service.sql('select id from email_outbox')).toEqual([]));

const tokenOf = ({ link }: Mail): string => new URL(link).searchParams.get('token') as string;

const submit = (path: string, fields: Record<string, string>, headers = {}): Promise<Response> =>
  fetch(new URL(path, service.url), {
    method: 'POST',
    body: new URLSearchParams(fields),
    headers: { Origin: new URL(service.url).origin, ...headers },
    redirect: 'manual',
  });

test('a forgotten password is set anew by the link of a mail, once, and all sessions end', async () => {
  const one = await newBrowser(service, 'forgetful@example.com');
  const away = browser(service);
  expect(await away.data(REQUEST, { email: 'Forgetful@Example.com' })).toEqual({ requestPasswordReset: true });
  const mail = await mailTo('forgetful@example.com', 'Set a new password');
  expect(mail.text).toContain('within 60 minutes');
  expect(mail.html).toContain(`<a href="${mail.link}">`);
  const token = tokenOf(mail);
  expect(JSON.stringify(await service.sql('select * from account_links'))).not.toContain(token);
  expect((await away.refused(RESET, { token, new: 'short' })).code).toBe('validation_failed');
  expect(await away.data(RESET, { token, new: NEXT_PASSWORD })).toEqual({ resetPassword: true });
  expect((await one.refused('{ viewer { user { id } } }')).code).toBe('session_required');
  expect((await away.refused(RESET, { token, new: NEXT_PASSWORD })).code).toBe('not_found');
  expect((await browser(service).logIn('forgetful@example.com', PASSWORD)).errors?.[0].extensions.code).toBe(
    'credentials_invalid',
  );
  expect((await browser(service).logIn('forgetful@example.com', NEXT_PASSWORD)).errors).toBeUndefined();
  await mailTo('forgetful@example.com', 'Your password was changed');
  const [entry] = await service.sql(`select actor, changed_fields from activity where action = 'user.password_reset'`);
  expect(entry).toMatchObject({ actor: { type: 'user', id: one.user.id }, changed_fields: ['password'] });
});

test('a request says nothing about who has a user, and a person gets three messages an hour', async () => {
  await newUser(service, 'known@example.com');
  const away = browser(service);
  for (let count = 0; count < 5; count += 1) {
    const known = await away.run(REQUEST, { email: 'known@example.com' });
    const unknown = await away.run(REQUEST, { email: 'unknown@example.com' });
    expect(unknown.text).toBe(known.text);
  }
  await outboxIsEmpty();
  await mailTo('known@example.com', 'Set a new password', 3);
  expect(await mailsTo('unknown@example.com')).toEqual([]);
});

test('a link is over after its time, and with a new password', async () => {
  const one = await newBrowser(service, 'late@example.com');
  const link = async (count: number): Promise<string> => {
    await one.data(REQUEST, { email: 'late@example.com' });
    return tokenOf(await mailTo('late@example.com', 'Set a new password', count));
  };
  const old = await link(1);
  await service.sql(`update account_links set expires_at = now() - interval '1 second' where used_at is null`);
  expect((await one.refused(RESET, { token: old, new: NEXT_PASSWORD })).code).toBe('not_found');
  const open = await link(2);
  await one.data(`mutation { changePassword(input: {password: "${PASSWORD}", new_password: "${NEXT_PASSWORD}"}) {
    active_keys { id } } }`);
  expect((await one.refused(RESET, { token: open, new: PASSWORD })).code).toBe('not_found');
});

test('an address is confirmed by the person who reads its mail', async () => {
  const one = await newBrowser(service, 'reader@example.com');
  const confirmed = async (): Promise<boolean> =>
    (await one.data('{ viewer { email_confirmed } }')).viewer.email_confirmed;
  expect(await confirmed()).toBe(false);
  await one.data('mutation { requestEmailConfirmation }');
  const { link } = await mailTo('reader@example.com', 'Confirm your e-mail address');
  const { pathname, searchParams } = new URL(link);
  const page = await fetch(new URL(pathname + new URL(link).search, service.url));
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(await page.text()).toContain('<button>Confirm</button>');
  // Programs that follow links have confirmed nothing.
  expect(await confirmed()).toBe(false);
  const token = searchParams.get('token') as string;
  const foreign = await submit(pathname, { token }, { Origin: 'https://elsewhere.example' });
  expect(foreign.status).toBe(403);
  expect(await (await submit(pathname, { token })).text()).toContain('Your e-mail address is confirmed.');
  expect(await confirmed()).toBe(true);
  expect((await one.refused('mutation { requestEmailConfirmation }')).code).toBe('invalid_state');
  expect((await one.refused(CONFIRM, { token })).code).toBe('not_found');
});

test('an invitation comes by mail, and its page makes the member', async () => {
  const owner = await newBrowser(service, 'inviter@example.com', 'owner');
  const made = await owner.data(
    `mutation ($id: ID!) { inviteMember(project_id: $id, input: {email: "joiner@example.com", role: developer}) {
      token } }`,
    { id: service.project },
  );
  const mail = await mailTo('joiner@example.com', `Invitation to the project ${await projectName()}`);
  expect(tokenOf(mail)).toBe(made.inviteMember.token);
  expect(mail.text).toContain('as developer');
  const { pathname } = new URL(mail.link);
  const token = tokenOf(mail);
  const wrong = await submit(pathname, { token, name: 'Jo <b>', password: 'short' });
  expect([wrong.status, await wrong.text()]).toEqual([422, expect.stringContaining('password must have at least 12')]);
  const joined = await submit(pathname, { token, name: 'Jo', password: PASSWORD });
  expect([joined.status, joined.headers.get('set-cookie')]).toEqual([200, expect.stringContaining('HttpOnly')]);
  expect((await browser(service).logIn('joiner@example.com')).errors).toBeUndefined();
  expect((await submit(pathname, { token, name: 'Jo', password: PASSWORD })).status).toBe(404);
});

test('the pages of passwords work without anything but a browser', async () => {
  await newUser(service, 'pages@example.com');
  const asked = await submit('/account/reset-password', { email: 'pages@example.com' });
  const unknown = await submit('/account/reset-password', { email: 'nobody@example.com' });
  expect(await asked.text()).toBe(await unknown.text());
  const { link } = await mailTo('pages@example.com', 'Set a new password');
  const { pathname, search, searchParams } = new URL(link);
  const form = await (await fetch(new URL(pathname + search, service.url))).text();
  expect(form).toContain(`name="token" value="${searchParams.get('token')}"`);
  const token = searchParams.get('token') as string;
  expect((await submit(pathname, { token: `${token}x`, password: NEXT_PASSWORD })).status).toBe(404);
  expect((await submit(pathname, { token, password: NEXT_PASSWORD })).status).toBe(200);
  expect((await browser(service).logIn('pages@example.com', NEXT_PASSWORD)).errors).toBeUndefined();
  expect((await submit(pathname, { token: 'x'.repeat(20_000) })).status).toBe(400);
});

test('an address of the network asks so often in a minute', async () => {
  const away = browser(service);
  const codes = new Set<string>();
  await withinOneMinute(5_000);
  for (let count = 0; count < 25; count += 1)
    codes.add((await away.run(REQUEST, { email: 'flood@example.com' })).errors?.[0].extensions.code ?? 'ok');
  expect([...codes]).toEqual(['ok', 'rate_limited']);
});

test('without mail, nobody is promised a link', async () => {
  const off = await startService({ settings: { SMTP_PORTS: '0' } });
  try {
    const refusal = await browser(off).refused(REQUEST, { email: 'owner@example.com' });
    expect([refusal.code, refusal.message]).toEqual(['engine_unavailable', expect.stringContaining('SMTP_PORTS')]);
  } finally {
    await off.close();
  }
});

const projectName = async (): Promise<string> =>
  (await service.sql('select name from projects where id = $1', [service.project]))[0].name;
