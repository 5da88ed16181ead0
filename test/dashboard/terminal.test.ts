/** @tier heavy @quarter 3 @covers clients/dashboard/src/pages/runs server/http/dashboard.ts server/runs */
// A shell of an application in the browser: typed, seen, resized, reconnected, ended.
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { dashboardOf, newPerson, screenshot, visit, type Window } from '../support/dashboard/chromium';
import { asItStands } from '../support/dashboard/page_rules';
import { runEnded } from '../support/runs/runs';

let service: DeployService;
let application: TestApplication;
let window: Window;
dashboardOf(
  async () => {
    service = await startDeployService();
    application = await service.application(nodeApp('one'));
    expect((await application.deploy()).status).toBe('active');
    await newPerson(service, 'owner@example.org', 'owner');
    return service;
  },
  (opened) => void (window = opened),
);

test('a terminal opens within an instance, from its row', async () => {
  const { page } = window;
  await visit(page, `/applications/${application.id}/processes`);
  await page.getByRole('button', { name: 'Open a terminal in this instance of web' }).click();
  await page.waitForURL(/\/runs\/run_\w+\/terminal$/);
  await page.locator('.log-head .status', { hasText: 'live' }).waitFor({ timeout: 30_000 });
  await page.locator('.xterm-helper-textarea').waitFor({ state: 'attached' });
  await type('echo in-$SVC_INSTANCE_ID-');
  await shows(/in-ins_\w+-/);
  await type('exit');
  await page.locator('.log-head .status', { hasText: 'ended' }).waitFor({ timeout: 30_000 });
});

const COLORS = `printf '\\033[38;2;10;200;30mtrue\\033[0m-%s\\n' colour`;

/** The text on the screen of the terminal. */
const screen = (): ReturnType<Window['page']['locator']> => window.page.locator('.xterm-rows');
const shows = (text: string | RegExp): Promise<void> => screen().locator('div', { hasText: text }).first().waitFor();

async function type(line: string): Promise<void> {
  await window.page.keyboard.type(line);
  await window.page.keyboard.press('Enter');
}

test('a shell opens from the list of runs, echoes what is typed, and has the colours of programs', async () => {
  const { page } = window;
  await visit(page, `/applications/${application.id}/runs`);
  await page.getByRole('button', { name: 'Open a shell' }).click();
  await page.waitForURL(/\/runs\/run_\w+\/terminal$/);
  await page.locator('.log-head .status', { hasText: 'live' }).waitFor({ timeout: 30_000 });
  await page.locator('.xterm-helper-textarea').waitFor({ state: 'attached' });
  expect(await page.locator('.log-head code').innerText()).toBe('Shell');
  await type('echo hi-$((40 + 2))');
  await shows('hi-42');
  await type(COLORS);
  await shows('true-colour');
  const color = await page.evaluate(`(() => {
    const cells = [...document.querySelectorAll('.xterm-rows span')];
    return getComputedStyle(cells.find((one) => one.textContent === 'true')).color;
  })()`);
  expect(color).toBe('rgb(10, 200, 30)');
  await screenshot(page, 'dashboard-terminal');
});

test('the size of the program follows that of the page', async () => {
  const { page } = window;
  await asItStands(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.locator('.xterm-screen').click();
  const columns = async (tag: string): Promise<number> => {
    await type(`echo ${tag}-$(stty size)-`);
    await shows(new RegExp(`${tag}-\\d+ \\d+-`));
    const [, wide] = new RegExp(`${tag}-\\d+ (\\d+)-`).exec(await screen().innerText()) ?? [];
    return Number(wide);
  };
  const wide = await columns('wide');
  await page.setViewportSize({ width: 640, height: 800 });
  const narrow = await columns('narrow');
  expect(narrow).toBeLessThan(wide - 20);
});

test('a broken connection is made again, and the screen is as before', async () => {
  const { page } = window;
  await page.setViewportSize({ width: 1280, height: 800 });
  await type('stay=here');
  await page.reload();
  await page.locator('.log-head .status', { hasText: 'live' }).waitFor();
  await type('echo still-$stay');
  await shows('still-here');
});

test('Ctrl+M leaves the terminal, and nothing else does', async () => {
  const { page } = window;
  await type('cat');
  await page.keyboard.press('Tab');
  expect(await page.evaluate('document.activeElement.className')).toContain('xterm-helper-textarea');
  await page.keyboard.press('Control+m');
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Back to the run');
});

test('the end says the exit code, on the page and in the run', async () => {
  const { page } = window;
  await page.locator('.xterm-screen').click();
  // What is typed before the terminal has flushed its input for Ctrl+C would be lost.
  await page.keyboard.press('Control+c');
  await shows('^C');
  await type('exit 7');
  await page.getByText('The command has ended with exit code 7.').waitFor();
  const [, id = ''] = /runs\/(run_\w+)/.exec(page.url()) ?? [];
  expect(await runEnded(application, id)).toMatchObject({ exit_code: 7 });
  await page.getByRole('button', { name: 'Back to the run' }).click();
  await page.waitForURL(new RegExp(`/runs/${id}$`));
  await page.locator('.headline .status', { hasText: 'failed' }).waitFor();
});

test('only the terminal has the relaxed policy, and no page has broken its own', async () => {
  const { page, complaints } = window;
  const policy = (place: string): Promise<string> =>
    page.evaluate(
      `fetch('${place}', { headers: { accept: 'text/html' } }).then((a) => a.headers.get('content-security-policy'))`,
    ) as Promise<string>;
  const runs = `/applications/${application.id}/runs`;
  expect(await policy(`${runs}/run_1/terminal`)).toContain("style-src 'self' 'unsafe-inline'");
  for (const place of [runs, `${runs}/run_1`, `${runs}/terminal`, '/', `${runs}/run_1/terminal/more`])
    expect(await policy(place)).not.toContain('unsafe');
  expect(complaints).toEqual([]);
  expect([...window.origins].every((origin) => [service.url, service.url.replace('http', 'ws')].includes(origin))).toBe(
    true,
  );
});
