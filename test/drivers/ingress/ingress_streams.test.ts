// Bytes as they come: uploads, events, trailers.
import { createHash, randomBytes } from 'node:crypto';
import http from 'node:http';
import {
  ask,
  closeAll,
  open,
  openFront,
  routeOf,
  startApp,
  startRawApp,
  until,
  whole,
} from '../../support/ingress/ingress';

afterEach(closeAll);

describe('streams', () => {
  test('the first event arrives before the answer ends', async () => {
    let finish = (): void => undefined;
    const app = await startApp((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: first\n\n');
      finish = () => response.end('data: last\n\n');
    });
    const front = await openFront([routeOf([app])]);
    const response = await new Promise<http.IncomingMessage>((resolve) => open(front).on('response', resolve).end());
    const first = await new Promise((resolve) => response.once('data', (chunk: Buffer) => resolve(chunk.toString())));
    expect(first).toBe('data: first\n\n');
    finish();
    expect((await whole(response)).body).toBe('data: last\n\n');
  });

  test('headers arrive before the body begins', async () => {
    let finish = (): void => undefined;
    const app = await startApp((_, response) => {
      response.writeHead(200);
      response.flushHeaders();
      finish = () => response.end('later');
    });
    const front = await openFront([routeOf([app])]);
    const response = await new Promise<http.IncomingMessage>((resolve) => open(front).on('response', resolve).end());
    finish();
    expect((await whole(response)).body).toBe('later');
  });

  test('200 MB up and down, without holding them', async () => {
    const app = await startApp((request, response) => void request.pipe(response));
    const front = await openFront([routeOf([app])], { limits: { bodyBytes: 200 << 20 } });
    const piece = randomBytes(1 << 20);
    const [sent, got] = [createHash('sha256'), createHash('sha256')];
    const before = process.memoryUsage();
    let most = 0;
    const request = open(front, { method: 'PUT' });
    const done = new Promise<void>(
      (resolve, reject) =>
        void request.on('error', reject).on('response', (response: http.IncomingMessage) => {
          response.on('data', (chunk: Buffer) => got.update(chunk)).on('end', resolve);
        }),
    );
    for (let index = 0; index < 200; index += 1) {
      sent.update(piece);
      if (!request.write(piece)) await new Promise((resolve) => request.once('drain', resolve));
      most = Math.max(most, process.memoryUsage().arrayBuffers - before.arrayBuffers);
    }
    request.end();
    await done;
    expect(got.digest('hex')).toBe(sent.digest('hex'));
    // Client, ingress and application are one process here, and what is dead is not collected at once.
    expect(most).toBeLessThan(130 << 20);
    await until(() => front.lines.length === 1);
    expect(front.ingress.takeTraffic()).toMatchObject([{ received_bytes: 200 << 20, sent_bytes: 200 << 20 }]);
  });

  test('an instance that does not read makes the client wait, not the ingress hold', async () => {
    let release = (): void => undefined;
    const app = await startApp(
      (request, response) => void (release = () => void request.resume().on('end', () => response.end('ok'))),
    );
    const front = await openFront([routeOf([app])]);
    const request = open(front, { method: 'PUT' });
    const answer = new Promise<http.IncomingMessage>((resolve) => request.on('response', resolve));
    request.write(Buffer.alloc(40 << 20));
    request.end();
    await new Promise((resolve) => setTimeout(resolve, 300));
    // What is still in the client has not been taken: kernel buffers hold some MB at most.
    expect(request.socket?.writableLength).toBeGreaterThan(20 << 20);
    release();
    expect((await whole(await answer)).body).toBe('ok');
  });

  test('many answers on one connection, of all shapes', async () => {
    const big = randomBytes(300_000).toString('base64');
    const app = await startApp((request, response) => {
      if (request.url === '/empty') response.writeHead(204).end();
      else if (request.url === '/same') response.writeHead(304, { etag: '"a"' }).end();
      else if (request.url === '/chunks')
        void (response.write('a'), setTimeout(() => (response.write('b'), response.end('c')), 5));
      else if (request.url === '/big') response.end(big);
      else response.writeHead(200, { 'content-length': 4 }).end('text');
    });
    const front = await openFront([routeOf([app])]);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    for (let round = 0; round < 5; round += 1) {
      expect(await ask(front, { path: '/empty', agent })).toMatchObject({ status: 204, body: '' });
      expect(await ask(front, { path: '/same', agent })).toMatchObject({ status: 304, body: '' });
      expect(await ask(front, { path: '/chunks', agent })).toMatchObject({ status: 200, body: 'abc' });
      expect((await ask(front, { path: '/big', agent })).body).toBe(big);
      expect(await ask(front, { path: '/', method: 'HEAD', agent })).toMatchObject({
        status: 200,
        body: '',
        headers: { 'content-length': '4' },
      });
      expect(await ask(front, { path: '/', agent })).toMatchObject({ status: 200, body: 'text' });
    }
    agent.destroy();
  });

  test('an answer in single bytes, and one that ends with its connection', async () => {
    const text =
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\n' +
      'X-T: 2\r\n\r\n';
    const app = await startRawApp(
      (socket) =>
        void socket.setNoDelay(true).on('data', async (head) => {
          if (String(head).startsWith('GET /old')) return void socket.end('HTTP/1.0 200 OK\r\n\r\nold');
          for (const byte of text) await new Promise((resolve) => socket.write(byte, () => setTimeout(resolve, 1)));
        }),
    );
    const front = await openFront([routeOf([app])]);
    expect(await ask(front)).toMatchObject({
      status: 200,
      body: 'abc0123456789',
      headers: { 'x-a': '1' },
      trailers: { 'x-t': '2' },
    });
    expect(await ask(front, { path: '/old' })).toMatchObject({ status: 200, body: 'old' });
    await until(() => app.sockets.size <= 1);
  });

  test('trailers both ways', async () => {
    const app = await startApp(
      (request, response) =>
        void request.resume().on('end', () => {
          response.writeHead(200, { trailer: 'X-Sum' });
          response.write('body');
          response.addTrailers({ 'X-Sum': request.trailers['x-in'] ?? 'none' });
          response.end();
        }),
    );
    const front = await openFront([routeOf([app])]);
    const request = open(front, { method: 'POST', headers: { 'transfer-encoding': 'chunked', trailer: 'X-In' } });
    const answer = new Promise<http.IncomingMessage>((resolve) => request.on('response', resolve));
    request.write('abc');
    request.addTrailers({ 'X-In': '42' });
    request.end();
    expect(await whole(await answer)).toMatchObject({ body: 'body', trailers: { 'x-sum': '42' } });
  });

  test('a client that waits for 100 is invited by the instance, or refused without a body', async () => {
    const app = await startApp((request, response) => void request.resume().on('end', () => response.end('took it')));
    app.server.on('checkContinue', (request: http.IncomingMessage, response: http.ServerResponse) => {
      if (request.url === '/no') return response.writeHead(401).end('no');
      response.writeContinue();
      request.resume().on('end', () => response.end('invited'));
    });
    const front = await openFront([routeOf([app])]);
    const send = (path: string): Promise<[boolean, http.IncomingMessage]> =>
      new Promise((resolve) => {
        let invited = false;
        const request = open(front, { path, method: 'POST', headers: { expect: '100-continue', 'content-length': 3 } });
        request
          .on('continue', () => ((invited = true), request.end('abc')))
          .on('response', (response) => resolve([invited, response]))
          .on('error', () => undefined);
        request.flushHeaders();
      });
    const [yes, first] = await send('/');
    expect([yes, (await whole(first)).body]).toEqual([true, 'invited']);
    const [no, second] = await send('/no');
    expect([no, (await whole(second)).status]).toEqual([false, 401]);
  });

  test('hints pass before the answer', async () => {
    const app = await startApp((_, response) => {
      response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' });
      response.end('ok');
    });
    const front = await openFront([routeOf([app])]);
    const request = open(front);
    const hints = new Promise((resolve) => request.on('information', resolve));
    const answer = new Promise<http.IncomingMessage>((resolve) => request.on('response', resolve));
    request.end();
    expect(await hints).toMatchObject({ statusCode: 103, headers: { link: '</style.css>; rel=preload; as=style' } });
    expect((await whole(await answer)).body).toBe('ok');
  });

  test('an answer before the body has come whole reaches the client', async () => {
    const app = await startApp((_, response) => void response.writeHead(422).end('too much'));
    const front = await openFront([routeOf([app])]);
    expect(await ask(front, { method: 'POST', body: Buffer.alloc(5 << 20) })).toMatchObject({
      status: 422,
      body: 'too much',
    });
    expect(await ask(front)).toMatchObject({ status: 422 });
  });
});
