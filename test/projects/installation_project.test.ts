// Projects of the installation, for its operators.
import { newBrowser, type Browser } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';

const PROJECTS = `query ($search: String, $limit: Int) { listInstallationProjects(search: $search, limit: $limit) {
  data { id name owners members applications databases disk_bytes last_activity_at } } }`;

let service: TestService;
let operator: Browser;
beforeAll(async () => {
  service = await startService();
  operator = await newBrowser(service, 'operator@example.com');
  await newBrowser(service, 'tenant_1@example.com', 'owner');
  await service.sql('update users set is_operator = true where email = $1', ['operator@example.com']);
});
afterAll(() => service.close());

async function queriesOf(run: () => Promise<unknown>): Promise<number> {
  await run();
  const query = jest.spyOn(service.platform.database, 'query');
  await run();
  const count = query.mock.calls.length;
  query.mockRestore();
  return count;
}

test('the list asks as often for many rows as for one', async () => {
  for (let index = 0; index < 12; index += 1) await service.newProject({ stranger: true });
  const count = (limit: number) => queriesOf(() => operator.data(PROJECTS, { limit }));
  expect(await count(12)).toBe(await count(1));
});

test('projects are shown by numbers', async () => {
  await service.call('POST', '/v2/applications', { body: { name: 'shop', preset: 'node-web' } });
  const { data } = (await operator.data(PROJECTS, { search: service.project })).listInstallationProjects;
  expect(data).toMatchObject([{ id: service.project, applications: 1, databases: 0, disk_bytes: null }]);
  expect(data[0].owners).toContain('tenant_1@example.com');
  expect(Date.parse(data[0].last_activity_at)).toBeGreaterThan(Date.now() - 60_000);
});
