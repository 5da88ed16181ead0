/** @tier heavy @quarter 3 @covers clients/dashboard server/http/dashboard.ts */
// A newcomer's path without a terminal: set the password, deploy from a Git address, watch the log, change a variable,
// roll back. In a real browser, beside a service that really deploys.
import { newFirstStartCode } from '../../models/identity/first_start';
import { startDeployService, visitHost, type DeployService } from '../support/deployments/deploy';
import {
  buildDashboard,
  closeBrowser,
  fileNeedsChromium,
  openWindow,
  settled,
  violations,
  type Page,
  type Window,
} from '../support/dashboard/chromium';

fileNeedsChromium();

const SERVER = `process.on('SIGTERM', () => process.exit());
console.log('shop has started');
require('http').createServer((_, answer) => answer.end('colour ' + process.env.COLOUR)).listen(process.env.PORT);`;

let service: DeployService;
let window: Window;
beforeAll(async () => {
  buildDashboard();
  service = await startDeployService();
  service.git.makeRepository('shop', {
    'package.json': JSON.stringify({ name: 'shop', scripts: { start: 'node server.js' } }),
    'server.js': SERVER,
  });
  window = await openWindow(service);
});
afterAll(async () => {
  await closeBrowser();
  await service?.close();
});

const deployed = async (number: number): Promise<void> => {
  const { page } = window;
  await page.getByRole('heading', { name: `Deployment #${number}` }).waitFor();
  await page.locator('.headline .status', { hasText: 'active' }).waitFor({ timeout: 50_000 });
};

test('the first start: the address with the code sets the password and logs in', async () => {
  const { page } = window;
  const code = await newFirstStartCode(service.platform.database);
  await page.goto(`/welcome#${code}`);
  await page.getByLabel('Your name').fill('Ada <b>Lovelace</b>');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await page.getByLabel('Password').fill('password12345');
  expect(await violations(page)).toEqual([]);
  await page.getByRole('button', { name: /Set password/ }).click();
  // Refused where it stands, in the words of the API.
  await page.locator('.field small.problem').waitFor();
  await page.getByLabel('Password').fill('correct horse battery');
  await page.getByRole('button', { name: /Set password/ }).click();
  await page.getByRole('heading', { name: 'Projects' }).waitFor();
  expect(page.url()).not.toContain('fst_');
});

test('by keyboard alone: project, new application from a Git address, live log, active', async () => {
  const { page } = window;
  await settled(page);
  await page.keyboard.press('g');
  await page.keyboard.press('n');
  const repository = page.getByLabel('Repository URL');
  await repository.waitFor();
  await tabTo(repository);
  await page.keyboard.type(service.git.url('shop'));
  await tabTo(page.getByLabel('Name', { exact: true }));
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('shop');
  await page.keyboard.press('Enter');
  await page.locator('.log-line', { hasText: 'Starting' }).first().waitFor({ timeout: 50_000 });
  await deployed(1);
  expect(await violations(page)).toEqual([]);
});

async function tabTo(field: ReturnType<Page['getByLabel']>): Promise<void> {
  for (let press = 0; press < 40; press += 1) {
    await window.page.keyboard.press('Tab');
    if (await field.evaluate((element) => element.matches(':focus'))) return;
  }
  throw new Error('the field cannot be reached by keyboard');
}

test('a variable is compared before it is saved, and reaches the program', async () => {
  const { page } = window;
  await page.getByRole('link', { name: 'Environment' }).click();
  await page.getByRole('button', { name: 'Add a variable' }).click();
  await page.getByLabel('Name of new variable').fill('COLOUR');
  await page.getByLabel('Value of COLOUR').fill('green');
  await page.getByRole('button', { name: 'Review and save' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('green').waitFor();
  expect(await violations(page)).toEqual([]);
  await dialog.getByLabel(/Restart the application/).uncheck();
  await dialog.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('The next deployment or restart uses it.').waitFor();
  await page.getByRole('button', { name: 'Deploy', exact: true }).click();
  await deployed(2);
  const { data } = (await service.call('GET', '/v2/applications')).body;
  expect(await colourOf(data[0].default_hostname)).toBe('colour green');
});

test('rolling back asks first, and leads to the new deployment', async () => {
  const { page } = window;
  await page.getByRole('link', { name: 'Deployments' }).click();
  await page.getByRole('button', { name: 'Roll back to #1' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
  await deployed(3);
});

test('the log has what the program wrote, and lines as they come', async () => {
  const { page } = window;
  await page.getByRole('link', { name: 'Logs', exact: true }).click();
  await page.locator('.log-line', { hasText: 'shop has started' }).first().waitFor();
  await page.locator('.log-head .status', { hasText: 'live' }).waitFor();
  const { data } = (await service.call('GET', '/v2/applications')).body;
  await colourOf(data[0].default_hostname, '/only-now');
  await page.locator('.log-line', { hasText: 'GET /only-now 200' }).waitFor();
});

test('all of it came from one origin, and nothing was complained of', () => {
  expect([...window.origins]).toEqual([service.url]);
  expect(window.complaints).toEqual([]);
});

async function colourOf(host: string, place = '/'): Promise<string> {
  return (await visitHost(service.platform.config.ingressPort, host, place)).body;
}
