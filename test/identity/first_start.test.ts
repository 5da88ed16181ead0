// The first start of an installation: the code that it prints, with which the owner sets a password.
import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { newFirstStartCode } from '../../models/identity/first_start';
import { renewSetupUrl } from '../../server/first_boot';
import { startService, type TestService } from '../support/service';
import { withinOneMinute } from '../support/processes/within_one_minute';
import { browser, LOGIN } from '../support/identity/browser';

const SET_UP = `mutation ($input: SetUpOwnerInput!) { setUpOwner(input: $input) { user { email name } } }`;
const PASSWORD = 'correct horse battery';

let service: TestService;
beforeEach(async () => {
  service = await startService({ settings: { RATE_LIMIT_FAILED_AUTH: '5' } });
});
afterEach(() => service.close());

const newCode = async (): Promise<string> => (await newFirstStartCode(service.platform.database)) as string;

test('the code sets e-mail address, name and password of the owner, logs in, and works once', async () => {
  const code = await newCode();
  const owner = browser(service);
  const input = { code, email: 'Ada@Example.com', password: PASSWORD, name: 'Ada' };
  const { setUpOwner } = await owner.data(SET_UP, { input });
  expect(setUpOwner.user).toEqual({ email: 'ada@example.com', name: 'Ada' });
  expect(await owner.data('{ viewer { user { email } } listProjects { data { role } } }')).toEqual({
    viewer: { user: { email: 'ada@example.com' } },
    listProjects: { data: [{ role: 'owner' }] },
  });
  expect((await browser(service).refused(SET_UP, { input: { ...input, email: 'eve@example.com' } })).code).toBe(
    'not_found',
  );
  const again = await browser(service).run(LOGIN, { input: { email: 'ada@example.com', password: PASSWORD } });
  expect(again.errors).toBeUndefined();
});

test('only the hash of the code is stored', async () => {
  const code = await newCode();
  const rows = await service.sql('select * from account_links');
  expect(rows).toHaveLength(2);
  expect(JSON.stringify(rows)).not.toContain(code.slice(4));
});

test('a code ends after a day, and the owner who has a password gets none', async () => {
  const old = await newCode();
  await service.sql(`update account_links set expires_at = now() - interval '1 second'`);
  const input = { code: old, email: 'ada@example.com', password: PASSWORD };
  expect((await browser(service).refused(SET_UP, { input })).code).toBe('not_found');
  const printed = (await renewSetupUrl(service.platform, 'terminal')) as string;
  const [, code = ''] = /\/welcome#(fst_[\w-]{40,})\n/.exec(printed) ?? [];
  await browser(service).data(SET_UP, { input: { ...input, code } });
  expect(await renewSetupUrl(service.platform, 'terminal')).toBeNull();
});

test('all codes end when one was used, or when the operator sets a password', async () => {
  const [first, second] = [await newCode(), await newCode()];
  const input = { code: first, email: 'ada@example.com', password: PASSWORD };
  await browser(service).data(SET_UP, { input });
  expect((await browser(service).refused(SET_UP, { input: { ...input, code: second } })).code).toBe('not_found');
});

test('an installation with more than its owner prints no code', async () => {
  await service.mintKey({ role: 'viewer' });
  expect(await renewSetupUrl(service.platform, 'terminal')).toBeNull();
});

test('a log gets no code: it stands in first-key.json, beside what was there', async () => {
  const file = path.join(service.dataDir, 'first-key.json');
  const before = JSON.parse(readFileSync(file, 'utf8'));
  expect(await renewSetupUrl(service.platform, 'log')).toContain(`setup_url in ${file}`);
  const after = JSON.parse(readFileSync(file, 'utf8'));
  expect(after).toEqual({ ...before, setup_url: expect.stringMatching(/\/welcome#fst_/) });
  expect(after.setup_url).not.toBe(before.setup_url);
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test('a weak password is refused at its field, and attempts are limited', async () => {
  const input = { code: await newCode(), email: 'ada@example.com', password: 'password1234' };
  const weak = await browser(service).refused(SET_UP, { input });
  expect([weak.code, weak.extensions.errors]).toEqual([
    'validation_failed',
    [expect.objectContaining({ field: 'password' })],
  ]);
  const guesses = [];
  await withinOneMinute(5_000);
  for (let guess = 0; guess < 6; guess += 1)
    guesses.push((await browser(service).refused(SET_UP, { input: { ...input, code: `fst_${guess}` } })).code);
  expect(guesses[0]).toBe('not_found');
  expect(guesses.at(-1)).toBe('rate_limited');
});
