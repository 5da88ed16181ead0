/** @tier heavy @quarter 2 @covers clients/cli/src/commands/approve.ts clients/cli/src/commands/login.ts */
// Calls that wait for a second person, and keys that are paused, by the command line.
import { newPerson, type Person } from '../support/identity/person';
import { buildCli, logInWith, openHome, type Home } from '../support/cli/svc';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService({ settings: { DESTROYING_CALLS_PER_MINUTE: '3' } });
  home = openHome(service);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const setMode = (mode: string): Promise<unknown> =>
  service.sql('update projects set approval_required_for = $2 where id = $1', [service.project, mode]);

test('a command that needs an approval says where; what waits is listed, shown and refused', async () => {
  await home.output(['volumes', 'create', 'uploads']);
  await setMode('keys');
  const { code, stderr } = await home.svc(['volumes', 'rm', 'uploads', '--yes']);
  expect(code).toBe(3);
  const [url, id = ''] = /http\S+\/approvals\/(apr_\w+)/.exec(stderr) ?? [];
  expect(url).toContain(`/projects/${service.project}/approvals/`);
  expect(stderr).toContain('repeat exactly this call within an hour');
  expect(await home.output(['approve'])).toMatch(new RegExp(`^Delete a volume\\tuploads\\t.*\\tpending\\t${id}\\n$`));
  const shown = await home.output(['approve', 'show', id]);
  expect(shown).toMatch(/changes\s+volume: 1/);
  expect(shown).toContain(url);
  // Whoever has the key is not the person.
  const approved = await home.svc(['approve', 'call', id, '--yes']);
  expect([approved.code, approved.stderr]).toEqual([2, expect.stringContaining('in the dashboard')]);
  expect(await home.output(['approve', 'refuse', id, '--field', 'status'])).toBe('refused\n');
  expect((await home.svc(['volumes', 'rm', 'uploads', '--yes'])).stderr).toContain('has refused this call');
  expect(await home.output(['approve', 'ls', '--status', 'refused', '--field', 'id'])).toBe(`${id}\n`);
  await setMode('none');
});

test('a paused key is listed, and goes on', async () => {
  const other = openHome({ ...service, key: await service.mintKey({ kind: 'project' }) });
  try {
    for (let i = 0; i < 4; i++) await other.svc(['api', 'deleteVolume', 'vol_01h455vb4pex5vsknk084sn02q']);
    const { code, stderr } = await other.svc(['volumes']);
    expect([code, stderr]).toEqual([3, expect.stringContaining('key_paused')]);
    const id = (await home.output(['approve', 'keys', '--field', 'id'])).trim();
    expect(id).toMatch(/^key_/);
    await home.output(['approve', 'resume', id]);
    await other.output(['volumes']);
  } finally {
    other.remove();
  }
});

test('a login says that it may not delete, and how to get that', async () => {
  const person: Person = await newPerson(service, 'careful@example.com', 'owner');
  const own = openHome();
  try {
    const { stderr } = await logInWith(own, service, person);
    expect(stderr).toContain('This login may not delete. To delete with svc, log in again and tick “Delete”');
    expect(await own.output(['whoami'])).toMatch(/\nmay delete\s+no\n/);
    await own.output(['volumes', 'create', 'kept', '--project', service.project]);
    const refused = await own.svc(['volumes', 'rm', 'kept', '--yes', '--project', service.project]);
    expect([refused.code, refused.stderr]).toEqual([
      3,
      expect.stringContaining('allow it on the page where the program logs in'),
    ]);
  } finally {
    own.remove();
  }
});
