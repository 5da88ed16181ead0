/** @user any */
// What nginx and PHP-FPM answer as builds of PHP start them: sources are run or hidden, whatever they are called.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '../../support/processes/free_port';
import { fileNeeds, isRoot } from '../../support/runner/programs';
import { retryCheck } from '../../support/wait_for';

const fpm = readdirSync('/usr/sbin').find((name) => /^php-fpm[\d.]+$/.test(name)) ?? 'php-fpm';
fileNeeds(fpm, 'nginx', 'setpriv');

const SECRET = '<?php $secret = 1;';
const FILES: Record<string, string> = {
  'index.php': `<?php
    for ($i = 0; $i < ($_GET['cookies'] ?? 0); $i += 1) header("Set-Cookie: c$i=" . str_repeat('x', 1500), false);
    echo 'route ' . $_SERVER['REQUEST_URI'] . ' ' . $_SERVER['SERVER_PORT'];`,
  'other.php': '<?php echo "other";',
  'photo.jpg': '<?php echo "run";',
  'vendor/tool/eval.php': '<?php echo "run";',
};
const HIDDEN = [
  'a.php~',
  'a.php.bak',
  'a.php.dist',
  'a.inc',
  'a.phtml',
  'a.php5',
  'a.phps',
  'auth.json',
  'dump.sql.gz',
];

let root: string;
let port: number;
let server: ChildProcess | undefined;

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), 'platform-php-server-'));
  chmodSync(root, 0o755);
  const files = { ...FILES, ...Object.fromEntries([...HIDDEN, 'a.PHP', '.env'].map((name) => [name, SECRET])) };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, 'public', name)), { recursive: true });
    writeFileSync(path.join(root, 'public', name), text);
  }
  const script = readFileSync(path.join(__dirname, '../../../drivers/builder/php/php_server.sh'), 'utf8');
  writeFileSync(path.join(root, 'server.sh'), `nginx=/usr/sbin/nginx\nfpm=/usr/sbin/${fpm}\n${script}`);
  port = await freePort();
  const drop = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : [];
  const [program = '', ...words] = [...drop, 'sh', 'server.sh', 'public'];
  const env = { PATH: process.env.PATH, PORT: String(port) };
  server = spawn(program, words, { cwd: root, env, stdio: 'ignore' });
  await retryCheck(async () => expect((await visit('/other.php')).body).toBe('other'));
});
afterAll(async () => {
  const ended = new Promise((resolve) => server?.once('exit', resolve));
  if (server?.kill('SIGTERM')) await ended;
  if (root) rmSync(root, { recursive: true, force: true });
});

function visit(place: string, headers: Record<string, string> = {}): Promise<{ status?: number; body: string }> {
  return new Promise((resolve, reject) => {
    // The paths of fetch() are normalised before they are sent.
    const options = { port, host: '127.0.0.1', path: place, headers, agent: false, maxHeaderSize: 100_000 };
    http
      .get(options, (response) => {
        let body = '';
        response.on('data', (part: Buffer) => (body += part.toString()));
        response.on('end', () => resolve({ status: response.statusCode, body }));
      })
      .on('error', reject);
  });
}

test.each(HIDDEN)('%s is not sent, and its address is a route like any other', async (name) => {
  expect(await visit(`/${name}?a=b`)).toEqual({ status: 200, body: `route /${name}?a=b ${port}` });
});

test.each([
  ...['/a.PHP', '/.env', '/%2eenv', '/missing.php', '/photo.jpg/a.php', '/vendor/tool/eval.php'],
  ...['/vendor%2ftool/eval.php', '//vendor//tool/eval.php', '/VENDOR/tool/eval.php', '/x/..%2f.env'],
])('%s is not found', async (place) => {
  expect((await visit(place)).status).toBe(404);
});

test.each(['/photo.jpg%00.php', '/..%2f..%2fetc/passwd'])('%s is no address', async (place) => {
  expect((await visit(place)).status).toBe(400);
});

test('what is not called PHP is not run', async () => {
  expect((await visit('/photo.jpg')).body).toBe('<?php echo "run";');
});

test('headers of 20 KB pass in both directions', async () => {
  expect((await visit('/', { cookie: 'x'.repeat(20_000) })).status).toBe(200);
  expect((await visit('/?cookies=20')).status).toBe(200);
});

test('the port is the one of the visitor', async () => {
  expect((await visit('/', { 'x-forwarded-proto': 'https' })).body).toBe('route / 443');
  expect((await visit('/', { 'x-forwarded-proto': 'http' })).body).toBe('route / 80');
});
