/** @tier heavy @quarter 2 @covers clients/cli/src/commands/undo.ts clients/cli/src/commands/protect.ts */
// Changes are taken back, and what holds data is protected, by the command line.
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService();
  home = openHome(service);
  await service.call('POST', '/v2/applications', { body: { name: 'shop' } });
  await home.output(['link', 'shop']);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const valueOf = async (key: string): Promise<string> => {
  const { body: list } = await service.call('GET', '/v2/applications?name=shop');
  return (await service.call('GET', `/v2/applications/${list.data[0].id}/env?key=${key}`)).body.data[0].value;
};

test('the last own change is shown and taken back, and the undo too', async () => {
  await home.output(['env', 'set', 'GREETING=one']);
  await home.output(['env', 'set', 'GREETING=two']);
  expect(await home.svc(['undo'])).toMatchObject({ code: 2 });
  expect(await valueOf('GREETING')).toBe('two');
  const { stderr, stdout, code } = await home.svc(['undo', '--yes']);
  expect(code).toBe(0);
  expect(stderr).toContain('environment_variable.set of the');
  expect(stderr).not.toMatch(/one|two/);
  expect(stdout).toMatch(/act_/);
  expect(await valueOf('GREETING')).toBe('one');
  await home.output(['undo', '--yes']);
  expect(await valueOf('GREETING')).toBe('two');
});

test('what others did is not taken back unless it is named', async () => {
  const other = await service.mintKey({ role: 'developer' });
  const { body: zone } = await service.call('POST', '/v2/dns_zones', { key: other, body: { name: 'example.com' } });
  const path = `/v2/dns_zones/${zone.id}/records`;
  const record = { type: 'A', name: 'www', value: '192.0.2.1' };
  const { body: made } = await service.call('POST', path, { key: other, body: record });
  await service.call('DELETE', `${path}/${made.id}`, { key: other });
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?action=dns_record.deleted`);
  const [{ id }] = body.data;
  const addresses = async (): Promise<string[]> =>
    (await service.call('GET', `${path}?type=A`)).body.data.map((one: { id: string }) => one.id);
  await home.output(['undo', '--yes']);
  expect(await addresses()).toEqual([]);
  expect(await home.output(['undo', id, '--yes', '--field', 'id'])).toBe(`${id}\n`);
  expect(await addresses()).toEqual([made.id]);
  expect(await home.svc(['undo', id, '--yes'])).toMatchObject({ code: 1, stderr: expect.stringContaining('reverted') });
  expect(await home.svc(['undo', 'act_01h455vb4pex5vsknk084sn02q', '--yes'])).toMatchObject({ code: 4 });
});

test('something with data is protected by its name, and a project whole', async () => {
  await home.output(['volumes', 'create', 'uploads']);
  expect(await home.output(['protect', 'uploads', '--field', 'deletion_protection'])).toBe('true\n');
  const refused = await home.svc(['volumes', 'rm', 'uploads', '--yes']);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('deletion protection') });
  await home.output(['protect', 'uploads', '--off']);
  await home.output(['protect', service.project, '--kind', 'project']);
  expect((await home.svc(['volumes', 'rm', 'uploads', '--yes'])).stderr).toContain('whole project');
  await home.output(['protect', service.project, '--kind', 'project', '--off']);
  await home.output(['volumes', 'rm', 'uploads', '--yes']);
  await service.call('POST', '/v2/volumes', { body: { name: 'shop', size_gb: 1 } });
  expect(await home.svc(['protect', 'shop'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--kind') });
  expect(await home.svc(['protect', 'nothing'])).toMatchObject({ code: 4 });
});
