// Which requests are sent again: those alone that have certainly not begun.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Target } from '../../../engines/ingress/ingress';
import { ask, closeAll, mirror, openFront, routeOf, startApp, startRawApp } from '../../support/ingress/ingress';

const children: ChildProcess[] = [];
afterEach(async () => {
  await closeAll();
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

test('an instance that refuses is passed over, also by a request with a body', async () => {
  const gone = await mirror('gone');
  const live = await startApp((request, response) => {
    let size = 0;
    request.on('data', (chunk: Buffer) => (size += chunk.length)).on('end', () => response.end(String(size)));
  });
  await gone.close();
  const front = await openFront([routeOf([gone, live])]);
  for (let index = 0; index < 6; index += 1)
    expect((await ask(front, { method: 'POST', body: Buffer.alloc(200_000) })).body).toBe('200000');
  for (let index = 0; index < 6; index += 1)
    expect((await ask(front, { method: 'POST', body: 'small' })).body).toBe('5');
  for (let index = 0; index < 6; index += 1) expect((await ask(front)).status).toBe(200);
  expect(front.lines.every((line) => line.instance_id === live.instance_id)).toBe(true);
});

test('a connection that was kept and closed meanwhile costs no request that may be repeated', async () => {
  let connections = 0;
  // Answers one request on each connection and closes it when the second comes.
  const app = await startRawApp((socket) => {
    connections += 1;
    let requests = 0;
    socket.on('data', () =>
      (requests += 1) === 1 ? socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok') : socket.destroy(),
    );
  });
  const front = await openFront([routeOf([app])]);
  for (let index = 0; index < 5; index += 1) expect((await ask(front)).body).toBe('ok');
  expect(connections).toBe(5);
});

test('a request that may have been acted on is not repeated', async () => {
  let seen = 0;
  const app = await startApp((request) => ((seen += 1), request.socket.destroy()));
  const front = await openFront([routeOf([app])]);
  expect((await ask(front, { method: 'POST', body: 'x' })).status).toBe(502);
  expect((await ask(front)).status).toBe(502);
  expect(seen).toBe(2);
});

test('a request that ends its instance is not sent to another one', async () => {
  const apps = [await startFragileApp(), await startFragileApp(), await startFragileApp()];
  const front = await openFront([routeOf(apps)]);
  // Each has a kept connection.
  for (let index = 0; index < 12; index += 1) expect((await ask(front)).status).toBe(200);
  expect((await ask(front, { path: '/exit' })).status).toBe(502);
  for (let index = 0; index < 12; index += 1) expect((await ask(front)).status).toBe(200);
  expect(children.filter(({ exitCode }) => exitCode !== null)).toHaveLength(1);
  expect((await ask(front, { path: '/exit' })).status).toBe(502);
  for (let index = 0; index < 6; index += 1) expect((await ask(front)).status).toBe(200);
  expect(children.filter(({ exitCode }) => exitCode !== null)).toHaveLength(2);
});

test('also under load', async () => {
  const apps = [await startFragileApp(), await startFragileApp(), await startFragileApp()];
  const front = await openFront([routeOf(apps)]);
  let loading = true;
  const load = Array.from({ length: 8 }, async () => {
    while (loading) await ask(front);
  });
  for (let round = 1; round <= 2; round += 1) {
    expect((await ask(front, { path: '/exit' })).status).toBe(502);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(children.filter(({ exitCode }) => exitCode !== null)).toHaveLength(round);
  }
  loading = false;
  await Promise.all(load);
});

let fragile = 0;

/** A process of its own that ends when it is asked for /exit. */
async function startFragileApp(): Promise<Target> {
  const program = `require('node:http').createServer((request, response) => {
    if (request.url === '/exit') process.exit(1);
    response.end('ok');
  }).listen(0, '127.0.0.1', function () { console.log(this.address().port); });`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  fragile += 1;
  return { instance_id: `ins_fragile_${fragile}`, port: Number(line.toString()) };
}
