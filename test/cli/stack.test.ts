/** @tier heavy @quarter 1 @covers clients/cli/src/commands/stack.ts */
// A project as a file by the command line. Nothing runs: what is made are rows.
import * as fs from 'node:fs';
import path from 'node:path';
import { buildCli, onTerminal, openHome, type Home } from '../support/cli/svc';
import { needs } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService();
  home = openHome(service);
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const write = (text: string | Buffer, name = 'platform.yaml'): void =>
  fs.writeFileSync(path.join(home.folder, name), text);

test('a file is planned, applied and exported', async () => {
  expect(await home.svc(['plan'])).toMatchObject({ code: 2, stderr: expect.stringContaining('svc export') });
  write(
    'volumes: { uploads: { size_gb: 1 } }\napplications: { shop: { variables: { A: b, KEY: { secret: true } } } }\n',
  );
  const planned = await home.svc(['plan']);
  expect(planned).toMatchObject({ code: 0, stderr: expect.stringContaining('svc env set KEY --app shop') });
  expect(planned.stdout).toBe(
    'create\tapplication\tshop\t\ncreate\tvolume\tuploads\tsize_gb: 1\n' +
      'create\tenvironment_variable\tshop/A\tvalue\n',
  );
  expect(await home.svc(['apply'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') });
  expect(await home.svc(['apply', '--yes', '--no-wait'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Made 3 changes.'),
  });
  expect(await home.svc(['plan'])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringContaining('as the file'),
  });
  const exported = await home.output(['export']);
  write(exported, 'copy.yaml');
  expect(await home.svc(['plan', 'copy.yaml', '--prune'])).toMatchObject({ code: 0, stdout: '' });
  expect(await home.output(['export', '--values'])).toContain('A: b');
});

test('what has data is deleted only where it is named', async () => {
  write('applications: { shop: {} }\n');
  const refused = await home.svc(['apply', '--prune', '--yes']);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('uploads is deleted with its data.') });
  expect(await home.output(['volumes'])).toContain('uploads');
  expect((await home.svc(['apply', '--prune', '--yes', '--confirm', 'database:uploads'])).code).toBe(2);
  const applied = await home.svc(['apply', '--prune', '--yes', '--confirm', 'volume:uploads']);
  expect(applied).toMatchObject({ code: 0, stderr: expect.stringContaining('Made 2 changes.') });
  expect(await home.output(['volumes'])).not.toContain('uploads');
});

test('an apply waits for what it has made, and says why it could not be made', async () => {
  write('volumes: { slow: { size_gb: 1 }, broken: { size_gb: 1 } }\n');
  const late = await home.svc(['apply', '--yes', '--timeout', '1s']);
  expect(late).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('After 1 s the status is still provisioning'),
  });
  write('volumes: { slower: { size_gb: 1 }, cracked: { size_gb: 1 } }\n');
  const applying = home.start(['apply', '--yes']);
  await applying.until(/Made 2 changes/);
  const set = 'update volumes set status = $2, status_reason = $3 where name = $1';
  await service.sql(set, ['cracked', 'failed', 'The disk is full.']);
  await service.sql(set, ['slower', 'available', null]);
  expect(await applying.ended).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/slower is available[^]*The volume cracked could not be made: The disk is full\./),
  });
});

test('a file that is refused ends with 1, and says the line', async () => {
  write('applications:\n  shop:\n    colour: red\n');
  expect(await home.svc(['plan'])).toMatchObject({ code: 1, stderr: expect.stringContaining('line 3') });
  write('applications:\n  shop:\n    application_type: huge\n');
  const refused = await home.svc(['plan']);
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('(line 3)') });
  expect(JSON.parse((await home.svc(['plan', '--json'])).stdout)).toMatchObject({ plan_token: null });
  write(Buffer.from([0x61, 0xff]));
  expect(await home.svc(['plan'])).toMatchObject({ code: 2, stderr: expect.stringContaining('not UTF-8') });
});

test('files of another platform are imported, from within their folder alone', async () => {
  fs.rmSync(path.join(home.folder, 'platform.yaml'), { force: true });
  const outside = fs.mkdtempSync(path.join(home.folder, '..', 'outside-'));
  fs.writeFileSync(path.join(outside, 'stolen.env'), 'STOLEN=yes\n');
  fs.mkdirSync(path.join(home.folder, 'old', 'more'), { recursive: true });
  fs.symlinkSync(path.join(outside, 'stolen.env'), path.join(home.folder, 'old', 'link.env'));
  write(
    'include: [more/compose.yaml]\nservices:\n  web:\n    image: nginx\n    privileged: true\n' +
      '    env_file: [link.env, more/own.env]\n    environment: { LEVEL: "${LEVEL}" }\n',
    'old/compose.yaml',
  );
  write('services: { jobs: { build: . } }\n', 'old/more/compose.yaml');
  write('OWN=1\n', 'old/more/own.env');
  write('LEVEL=debug\n', 'old/.env');
  const imported = await home.svc(['import', 'old']);
  expect(imported).toMatchObject({ code: 0, stderr: expect.stringContaining('link.env leads out of the folder') });
  expect(imported.stdout).toContain('compose.yaml:5\tservices.web.privileged\tNo application has rights on the host.');
  const written = fs.readFileSync(path.join(home.folder, 'platform.yaml'), 'utf8');
  expect(written).toMatch(/jobs:[^]*OWN: "1"[^]*LEVEL: debug|OWN: "1"[^]*LEVEL: debug[^]*jobs:/);
  expect(written).not.toContain('STOLEN');
  expect(await home.svc(['plan'])).toMatchObject({ code: 0, stdout: expect.stringContaining('create\tapplication') });
  expect(await home.svc(['import', 'old'])).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') });
  expect(await home.svc(['import', 'old/compose.yaml', '--force'])).toMatchObject({ code: 0 });
  expect(await home.svc(['import', 'nowhere', '--force'])).toMatchObject({ code: 2 });
  fs.rmSync(outside, { recursive: true });
});

const { test: terminalTest } = needs('script');
terminalTest('on a terminal secrets that are missing are asked for, unseen (needs script)', async () => {
  write('applications: { desk: { variables: { KEY: { secret: true }, OTHER: { secret: true } } } }\n');
  const running = onTerminal(home, ['apply']);
  await running.until(/Make these changes\? \[y\/N\] /);
  running.child.stdin?.write('y\n');
  await running.until(/KEY of desk \(Enter leaves it out\): /);
  running.child.stdin?.write('hunter2\n');
  await running.until(/OTHER of desk \(Enter leaves it out\): /);
  running.child.stdin?.write('\n');
  const { code, stdout } = await running.ended;
  expect([code, stdout.includes('hunter2'), stdout.includes('Set KEY of desk.')]).toEqual([0, false, true]);
  expect(await home.output(['env', 'ls', '--values', '-a', 'desk'])).toMatch(/KEY\s+hunter2/);
  write('applications: { desk: { variables: { OTHER: { secret: true } } } }\n');
  const again = onTerminal(home, ['apply']);
  await again.until(/OTHER of desk/);
  await again.until(/leaves it out\): /);
  again.child.stdin?.write('later\n');
  expect(await again.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('Set OTHER of desk.') });
});
