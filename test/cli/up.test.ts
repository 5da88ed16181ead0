/** @user any */
// From a folder to a live application and on: link, up, logs, variables, scale, rollback.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { buildCli, openHome, type Home, type RunOptions } from '../support/cli/svc';
import { freePort } from '../support/processes/free_port';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startService({ worker: true, settings: { S3_PORT: String(await freePort()) } });
  home = openHome(service);
  write('index.html', 'version 1');
  write('.gitignore', 'secret/\n*.log\n');
  write('.dockerignore', 'docs\n');
  for (const name of ['secret/key', 'debug.log', 'docs/page', '.env', 'node_modules/x/index.js'])
    write(name, 'left out');
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const write = (name: string, text: string): void => {
  const file = path.join(home.folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
};
/** Names below localhost need no name server. */
const visit = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { port, host, pathname } = new URL(url);
    http
      .get({ host: '127.0.0.1', port, path: pathname, headers: { Host: host }, agent: false }, (response) => {
        let text = '';
        response.on('data', (part) => (text += part)).on('end', () => resolve(text));
      })
      .on('error', reject);
  });
const uploads = (): Promise<{ id: string }[]> => service.sql('select id from source_uploads order by created_at');
const output = async (args: string[], options?: RunOptions): Promise<string> =>
  (await home.output(args, options)).trim();

test('a folder that is not linked is not deployed without being told to', async () => {
  expect(await home.svc(['up'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('This folder is not linked to an application.'),
  });
});

test('up creates the application, links the folder, shows the log and prints the address', async () => {
  const { code, stdout, stderr } = await home.svc(['up', '--create']);
  expect([code, stderr]).toEqual([0, expect.stringContaining('Deployment 1 is active.')]);
  expect(stdout).toMatch(/^http:\/\/shop-\w+\.\S+:\d+\n$/);
  expect(stderr).toMatch(/Not sent: \.env\.[^]*Sending 3 files, \d+ B\.[^]*Deployment 1\nbuild /);
  expect(await visit(stdout.trim())).toBe('version 1');
  const link = JSON.parse(fs.readFileSync(path.join(home.folder, '.svc/link.json'), 'utf8'));
  expect(link).toEqual({
    url: service.url,
    project_id: service.project,
    application_id: expect.stringMatching(/^app_/),
  });
  expect(fs.readFileSync(path.join(home.folder, '.gitignore'), 'utf8')).toBe('secret/\n*.log\n.svc/\n');
});

test('a second up without a change sends no archive, one with a change does', async () => {
  // The link is in .gitignore now, which is a file of the source.
  await output(['up']);
  const before = await uploads();
  const again = await home.svc(['up', '--json'], { cwd: path.join(home.folder, 'docs') });
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('Nothing has changed in 3 files') });
  expect(JSON.parse(again.stdout)).toMatchObject({ number: 3, status: 'active', source: { type: 'upload' } });
  expect(await uploads()).toEqual(before);
  write('index.html', 'version 2');
  expect(await visit(await output(['up']))).toBe('version 2');
  expect(await uploads()).toHaveLength(before.length + 1);
}, 30_000);

test('what Git leaves out above the folder is neither sent nor served', async () => {
  const top = path.join(home.directory, 'shops');
  const files = {
    '.gitignore': '*.pem\n/web/export/customers.csv\n',
    'web/index.html': 'of Git',
    'web/key.pem': 'secret',
  };
  for (const [name, text] of Object.entries({ ...files, 'web/export/customers.csv': 'Ada' }))
    write(`../shops/${name}`, text);
  execFileSync('git', ['init', '--quiet'], { cwd: top });
  const url = await output(['up', '--create'], { cwd: path.join(top, 'web') });
  expect(await visit(url)).toBe('of Git');
  for (const name of ['key.pem', 'export/customers.csv'])
    expect(await visit(`${url}/${name}`)).not.toMatch(/secret|Ada/);
  await output(['api', 'deleteApplication'], { cwd: path.join(top, 'web') });
}, 30_000);

test('status, open, ps and logs show what runs', async () => {
  const url = await output(['open']);
  await visit(url);
  expect(await output(['status'])).toMatch(/application\tshop\nstatus\trunning\n[^]*url\thttp[^]*\n4\tactive\t/);
  expect(await output(['status', '--field', 'url'])).toBe(url);
  expect(await output(['ps'])).toMatch(/^ins_\w+\tweb\trunning\t/);
  for (let tries = 0; !(await output(['logs', '--source', 'router'])).includes('GET / 200'); tries += 1)
    if (tries > 20) throw new Error('no line of the router');
  expect(await output(['logs', '--deployment', '4', '--since', '1h', '-n', '5', '--json'])).toContain(
    '"step":"deploy"',
  );
  const following = home.start(['logs', '-f', '--source', 'router']);
  await following.until(/GET \/ 200/);
  await visit(`${url}`);
  await following.until(/GET \/ 200[^]*GET \/ 200/);
  following.child.kill('SIGINT');
  expect((await following.ended).code).toBe(130);
});

test('scale, restart and rollback change it', async () => {
  expect(await output(['scale', 'web=2', '--wait', '--timeout', '30s'])).toMatch(/^web\t2\t2\trunning$/);
  expect(await home.svc(['scale', 'worker=1'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('There are: web'),
  });
  expect(await home.svc(['scale', 'web'])).toMatchObject({ code: 2 });
  expect(await output(['restart', '--wait'])).toMatch(/status\trunning/);
  const url = await output(['rollback', '3', '--wait']);
  expect(await visit(url)).toBe('version 1');
}, 60_000);

test('variables are set, pulled, pushed, edited and removed', async () => {
  await output(['env', 'set', 'GREETING=hello there', 'KEY=a']);
  await output(['env', 'set', 'PEM'], { input: 'line 1\nline "2"\n' });
  expect(await output(['env', 'ls'])).not.toContain('hello');
  expect(await output(['env', 'ls', '--values', '--field', 'value'])).toContain('hello there');
  await output(['env', 'pull', 'pulled.env']);
  const file = path.join(home.folder, 'pulled.env');
  expect(fs.statSync(file).mode & 0o777).toBe(0o600);
  expect(fs.readFileSync(file, 'utf8')).toBe(`GREETING='hello there'\nKEY=a\nPEM='line 1\nline "2"'\n`);
  expect(await home.svc(['env', 'push', 'pulled.env'])).toMatchObject({ code: 0, stderr: 'Nothing has changed.\n' });
  // As editors on Windows write it.
  fs.writeFileSync(file, '\uFEFF# ours\r\nexport GREETING="good\\nmorning" # note\r\n\r\nKEY = b # c\r\nEMPTY=\r\n');
  const pushed = await home.svc(['env', 'push', 'pulled.env', '--prune', '--yes']);
  expect(pushed).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('change  GREETING\nchange  KEY\nadd  EMPTY\nremove  PEM'),
  });
  expect(
    JSON.parse(await output(['env', 'ls', '--values', '--json'])).map((row: Record<string, string>) => [
      row.key,
      row.value,
    ]),
  ).toEqual([
    ['EMPTY', ''],
    ['GREETING', 'good\nmorning'],
    ['KEY', 'b'],
  ]);
  const editor = { VISUAL: `sed -i -e s/KEY=b/KEY=c/ -e /EMPTY/d` };
  expect((await home.svc(['env', 'edit', '--yes'], { env: editor })).stderr).toContain('change  KEY\nremove  EMPTY');
  await output(['env', 'unset', 'KEY']);
  expect(await home.svc(['env', 'unset', 'KEY'])).toMatchObject({ code: 4 });
  const reserved = await home.svc(['env', 'set', 'A=1', 'SVC_URL=x']);
  expect(reserved).toMatchObject({ code: 1, stderr: expect.stringContaining('env_key_reserved') });
  expect(await output(['env', 'ls', '--field', 'key'])).toBe('GREETING');
});

test('a deployment that fails ends with 1, the reason and the log', async () => {
  write('package.json', '{"name": "x", "version": "1.0.0", "scripts": {"build": "exit 3", "start": "node x"}}');
  const { code, stdout, stderr } = await home.svc(['up']);
  expect([code, stdout]).toEqual([1, '']);
  // The reason is the last line of the log, and is said once.
  expect(stderr).toMatch(/exit 3[^]*\nError: Deployment 6 failed\.\n$/);
  const seen = await home.svc(['status']);
  const [, reason = ''] = /^Deployment 6 failed: (.+)$/m.exec(seen.stderr) ?? [];
  expect(reason).not.toBe('');
  expect(stderr.split(reason)).toHaveLength(2);
  fs.rmSync(path.join(home.folder, 'package.json'));
}, 60_000);

test('domains, previews, buckets and keys', async () => {
  expect(await output(['domains', 'add', 'shop.example.com'])).toMatch(
    /hostname\tshop\.example\.com\n[^]*\nCNAME\tshop/,
  );
  expect((await home.svc(['domains', 'verify', 'shop.example.com'])).code).toBe(1);
  expect(await home.svc(['domains', 'rm', 'shop.example.com'])).toMatchObject({ code: 2 });
  await output(['domains', 'rm', 'shop.example.com', '--yes']);
  expect(await output(['domains', 'ls'])).toBe('');
  expect(await output(['previews', 'ls'])).toBe('');
  expect(await home.svc(['previews', 'create'])).toMatchObject({ code: 2 });
  expect(await output(['buckets', 'create', 'shop-pictures'])).toContain('name\tshop-pictures');
  const key = await output(['keys', 'create', 'uploader', '--bucket', 'shop-pictures', '--field', 'secret_access_key']);
  expect(key).toHaveLength(40);
  expect(await output(['keys', 'ls'])).toMatch(/^uploader\t/);
  expect(await output(['keys', 'rotate', 'uploader', '--yes', '--field', 'secret_access_key'])).not.toBe(key);
  await output(['keys', 'rm', 'uploader', '--yes']);
  await output(['buckets', 'rm', 'shop-pictures', '--yes']);
  expect(await home.svc(['buckets', 'rm', 'shop-pictures', '--yes'])).toMatchObject({ code: 4 });
});

test('link and doctor', async () => {
  const elsewhere = path.join(home.directory, 'elsewhere');
  fs.mkdirSync(elsewhere);
  expect(await home.svc(['link'], { cwd: elsewhere })).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('There are: shop'),
  });
  await output(['link', 'shop'], { cwd: elsewhere });
  expect(await output(['doctor', '--json'], { cwd: elsewhere })).toContain('"check": "login",\n    "result": "ok"');
  await output(['link', '--remove'], { cwd: elsewhere });
  expect(await home.svc(['status'], { cwd: elsewhere })).toMatchObject({ code: 2 });
  const away = await home.svc(['doctor'], { env: { SVC_URL: 'http://127.0.0.1:1' } });
  expect(away).toMatchObject({ code: 1, stdout: expect.stringContaining('network\tfailed\tCould not connect') });
  expect(away.stdout + away.stderr).not.toContain(service.key);
});
