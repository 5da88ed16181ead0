/** @tier heavy @quarter 4 @covers clients/dashboard/src/pages/account.tsx clients/dashboard/src/pages/log_in.tsx */
// The account of a person in the browser: another password, the second factor, sessions elsewhere.
import { Secret, TOTP } from 'otpauth';
import {
  dashboardOf,
  newPerson,
  openWindow,
  PASSWORD,
  settled,
  signIn,
  violations,
  visit,
  type Page,
} from '../support/dashboard/chromium';
import { startService, type TestService } from '../support/service';

const EMAIL = 'ada@example.org';
const NEXT = 'another long enough password';

let service: TestService;
dashboardOf(
  async () => {
    service = await startService();
    await newPerson(service, 'owner@example.org', 'owner');
    await newPerson(service, EMAIL, 'developer');
    return service;
  },
  () => undefined,
);

const codeOf = (secret: string): string => new TOTP({ secret: Secret.fromBase32(secret) }).generate();
/** A code counts once; as if the next one had come. */
const passTime = (): Promise<unknown> => service.sql('update users set totp_last_step = 0 where email = $1', [EMAIL]);
const field = (page: Page, label: string) => page.getByLabel(label, { exact: true });
const press = (page: Page, name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
const refusal = (page: Page, name: string): Promise<void> =>
  page.locator(`input[name=${name}][aria-invalid=true]`).waitFor();

async function signInWith(page: Page, password: string, code?: string): Promise<void> {
  await page.goto('/sign-in');
  await field(page, 'E-mail address').fill(EMAIL);
  await field(page, 'Password').fill(password);
  await press(page, 'Log in');
  if (code === undefined) return;
  await field(page, 'Code').fill(code);
  await press(page, 'Log in');
}

const arrived = async (page: Page): Promise<void> => {
  await page.waitForURL('/');
  await settled(page);
};

test('a password is changed by who knows it, and ends the other sessions', async () => {
  await service.mintKey();
  const ofAda = `user_id = (select id from users where email = $1)`;
  await service.sql(`update api_keys set ${ofAda} where name = 'Test key'`, [EMAIL]);
  const elsewhere = await openWindow(service);
  await signIn(elsewhere, EMAIL);
  const own = await openWindow(service);
  const { page } = own;
  await signIn(own, EMAIL);
  await visit(page, '/settings');
  await page.getByText('this one').waitFor();
  await field(page, 'Current password').fill('not the password');
  await field(page, 'New password').fill(NEXT);
  await press(page, 'Change password');
  await refusal(page, 'password');
  expect(await violations(page)).toEqual([]);
  await field(page, 'Current password').fill(PASSWORD);
  await press(page, 'Change password');
  await page.getByText('Your password is changed.').waitFor();
  expect(await page.getByText('Personal keys that go on working: 1.').count()).toBe(1);
  expect(await field(page, 'New password').inputValue()).toBe('');
  await elsewhere.page.goto('/settings');
  await elsewhere.page.waitForURL(/sign-in/);
  await signInWith(elsewhere.page, PASSWORD);
  await elsewhere.page.getByRole('alert').waitFor();
  await signInWith(elsewhere.page, NEXT);
  await arrived(elsewhere.page);
  // That one is seen here, and ended.
  await visit(page, '/settings');
  await page.getByRole('button', { name: /^End the session/ }).click();
  await page.getByRole('button', { name: /^End the session/ }).waitFor({ state: 'detached' });
  await elsewhere.page.goto('/settings');
  await elsewhere.page.waitForURL(/sign-in/);
});

test('the second factor is turned on, asked for, and turned off', async () => {
  const own = await openWindow(service);
  const { page } = own;
  await signInWith(page, NEXT);
  await arrived(page);
  await visit(page, '/settings');
  await field(page, 'Your password').fill(PASSWORD);
  await press(page, 'Set up two-factor authentication');
  await refusal(page, 'password');
  await field(page, 'Your password').fill(NEXT);
  await press(page, 'Set up two-factor authentication');
  const secret = (await page.getByLabel('secret', { exact: true }).innerText()).trim();
  await field(page, 'Code').fill('12');
  await press(page, 'Turn on');
  await refusal(page, 'code');
  await field(page, 'Code').fill(codeOf(secret));
  await press(page, 'Turn on');
  const codes = (await page.getByLabel('recovery codes', { exact: true }).innerText()).trim().split(/\s+/);
  expect(new Set(codes).size).toBe(10);
  expect(await violations(page)).toEqual([]);
  await press(page, 'I have saved them');
  await page.getByText('10 recovery codes are left').waitFor();
  const elsewhere = (await openWindow(service)).page;
  await signInWith(elsewhere, NEXT, codes[0]);
  await arrived(elsewhere);
  await passTime();
  await visit(page, '/settings');
  await page.getByText('9 recovery codes are left').waitFor();
  await field(page, 'Your password').fill(NEXT);
  await field(page, 'Code').fill('000000');
  await press(page, 'Turn off');
  await refusal(page, 'code');
  await passTime();
  await field(page, 'Code').fill(codeOf(secret));
  await press(page, 'Turn off');
  await page.getByRole('button', { name: 'Set up two-factor authentication' }).waitFor();
  await signInWith(elsewhere, NEXT);
  await arrived(elsewhere);
  expect(own.complaints).toEqual([]);
});
