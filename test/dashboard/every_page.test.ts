/** @tier heavy @quarter 1 @covers clients/dashboard/src server/http/dashboard.ts */
// Every route of the dashboard: its policy holds, nothing is asked elsewhere, and what "As API call" shows works.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { PASSWORD, violations, visit, type Window } from '../support/dashboard/chromium';
import { faultsOfCommand, wordsOf } from '../support/dashboard/commands';
import { pageAddress, PAGE_ROUTES as ROUTES } from '../support/dashboard/routes';
import { resourceTable, rootPages } from '../support/dashboard/generic';
import { worldDashboard } from '../support/dashboard/world_dashboard';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import type { TestService } from '../support/service';
import type { World } from '../support/world';

let service: TestService;
let window: Window;
let world: World;
worldDashboard((opened) => {
  ({ service, world, window } = opened);
  buildCli();
});

/** Pages that ask nothing of the API, or that are there for people who have not signed in. */
const WITHOUT_CALLS = ['/sign-in', '/welcome', '/projects/:id/file'];

async function cookie(): Promise<string> {
  const login = 'mutation ($input: LoginInput!) { login(input: $input) { user { id } } }';
  const input = { email: 'owner@example.org', password: PASSWORD };
  const answer = await fetch(`${service.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: login, variables: { input } }),
  });
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

/** Runs a command as it stands on the page. @returns what the API refuses; empty if nothing */
async function refusalOf(command: string, env: Record<string, string>): Promise<string> {
  // A stream does not end by itself.
  const limited = command.includes(' -N ') ? command.replace('curl ', 'curl -m 1 ') : command;
  const run = promisify(execFile)('bash', ['-c', `${limited} -s -w ' HTTP %{http_code}'`], { env, maxBuffer: 1 << 26 });
  const output = await run.then(
    ({ stdout }) => stdout,
    ({ stdout }: { stdout: string }) => stdout,
  );
  const isAnswered = command.includes(' -N ') ? /^(:|event:)/.test(output) : /HTTP 200$/.test(output);
  return isAnswered && !/"errors":\[\{"message"/.test(output) ? '' : `${command}\n${output.slice(0, 300)}`;
}

const EMPTY_COMMANDS = `[...document.querySelectorAll('.empty .command code')].map(({ textContent }) => textContent)`;

/** What `svc` or the API has against a command as it stands, which changes nothing; empty if nothing. */
async function faultOfTrial(command: string, home: Home): Promise<string> {
  const [, rest = ''] = /^svc (api .*)$/.exec(command) ?? [];
  // Commands of their own take no dry run, and ids and secrets are left open: arguments are compared with the help.
  if (!rest || rest.includes('…')) return faultsOfCommand(command).join();
  const { code, stderr } = await home.svc(wordsOf(`${rest} --dry-run`));
  return code === 0 ? '' : `${command}\n${stderr}`;
}

test('where a list is empty, the command of its next step works', async () => {
  const { page } = window;
  const roots = rootPages(resourceTable(), 'project').map((key) => `/projects/${service.project}/resources/${key}`);
  const pages = ROUTES.filter((pattern) => /^\/projects\/:id[^*]*$/.test(pattern));
  const commands = new Set<string>();
  for (const place of [...(await Promise.all(pages.map((pattern) => pageAddress(world, pattern)))), ...roots]) {
    await visit(page, place);
    for (const command of (await page.evaluate(EMPTY_COMMANDS)) as string[]) commands.add(command);
  }
  const home = openHome(service);
  const faults: string[] = [];
  for (const command of commands) faults.push(await faultOfTrial(command, home));
  home.remove();
  console.info(`${commands.size} commands of empty lists`);
  expect(faults.filter(Boolean)).toEqual([]);
  expect(commands.size).toBeGreaterThan(15);
}, 240_000);

test('each route keeps its policy, and what it shows as API call works as it stands', async () => {
  const { page } = window;
  const env = { ...process.env, KEY: service.key, COOKIE: await cookie() } as Record<string, string>;
  const [faults, calls, commands] = [[] as string[], new Set<string>(), new Set<string>()];
  for (const pattern of ROUTES) {
    await visit(page, await pageAddress(world, pattern));
    if (WITHOUT_CALLS.includes(pattern)) continue;
    await page.locator('details.api-calls summary').first().click();
    // What is known of operations is loaded when it is opened. An index of kinds asks nothing, and
    // what the palette asks is not shown.
    const asked = page.locator('details.api-calls figcaption', { hasText: 'GraphQL' });
    const isAsking = !pattern.endsWith('/*') && pattern !== '/search';
    if (isAsking) await asked.first().waitFor();
    const shown = (await page.evaluate(`[...document.querySelectorAll('details.api-calls pre, .empty .command code')]
      .map((element) => element.textContent)`)) as string[];
    if (!shown.length) faults.push(`${pattern}: nothing as API call`);
    for (const text of shown) {
      if (text.startsWith('curl ')) calls.add(text);
      else if (text.startsWith('svc ')) commands.add(text);
    }
  }
  for (const command of calls) faults.push(await refusalOf(command, env));
  for (const command of commands) faults.push(...faultsOfCommand(command));
  console.info(`${ROUTES.length} routes, ${calls.size} calls with curl, ${commands.size} commands of svc`);
  expect(faults.filter(Boolean)).toEqual([]);
  expect(calls.size).toBeGreaterThan(50);
  expect(commands.size).toBeGreaterThan(30);
}, 600_000);

test('no route is without the rules of axe, on the smallest screen and in the dark', async () => {
  const { page } = window;
  await page.setViewportSize({ width: 320, height: 800 });
  await page.emulateMedia({ colorScheme: 'dark' });
  const faults: string[] = [];
  for (const pattern of ROUTES) {
    await visit(page, await pageAddress(world, pattern));
    faults.push(...(await violations(page)).map((fault) => `${pattern}: ${fault}`));
  }
  expect(faults).toEqual([]);
}, 240_000);

test('nothing was asked elsewhere, and no policy was broken', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});

test('the policy allows no script in a document, and no style outside of the page with the terminal', async () => {
  for (const pattern of ROUTES) {
    const answer = await fetch(service.url + (await pageAddress(world, pattern)), { headers: { accept: 'text/html' } });
    const policy = answer.headers.get('content-security-policy') ?? '';
    const [, scripts] = /script-src ([^;]*)/.exec(policy) ?? [];
    const [, styles] = /style-src ([^;]*)/.exec(policy) ?? [];
    const isTerminal = pattern.endsWith('/terminal');
    expect([pattern, scripts, /unsafe-inline/.test(styles ?? '')]).toEqual([pattern, "'self'", isTerminal]);
    expect(policy).toContain("default-src 'none'");
    expect(await answer.text()).not.toMatch(/<style|style="|<script(?![^>]* src=)|\son\w+=/);
  }
});
