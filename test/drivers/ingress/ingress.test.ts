// Which instance gets a request, and what it sees of it.
import http from 'node:http';
import net from 'node:net';
import type { Route } from '../../../engines/ingress/ingress';
import { ask, closeAll, openFront, raw, mirror, routeOf, startApp } from '../../support/ingress/ingress';

afterEach(closeAll);

describe('hosts', () => {
  test('exact, then the wildcard one label up; case, port and trailing dot do not count', async () => {
    const [one, all] = [await mirror('one'), await mirror('all')];
    const front = await openFront([
      routeOf([one], { hosts: ['one.example.com'] }),
      routeOf([all], { application_id: 'app_2', hosts: ['*.example.com', 'Example.com'] }),
    ]);
    const nameAt = async (host: string): Promise<string | number> => {
      const { status, body } = await ask(front, { host });
      return status === 200 ? JSON.parse(body).name : status;
    };
    expect(await nameAt('one.example.com')).toBe('one');
    expect(await nameAt('ONE.Example.COM.:8000')).toBe('one');
    expect(await nameAt('two.example.com')).toBe('all');
    expect(await nameAt('example.com')).toBe('all');
    expect(await nameAt('a.two.example.com')).toBe(404);
    expect(await nameAt('example.org')).toBe(404);
    expect(await nameAt('[::1]:8000')).toBe(404);
    expect(await nameAt('.example.com')).toBe(404);
    expect(await nameAt('evil/.example.com')).toBe(404);
    expect(await nameAt('one.example.com:x')).toBe(404);
  });

  test('a host in the request line wins over the header', async () => {
    const front = await openFront([routeOf([await mirror('one')])]);
    const text = await raw(
      front.port,
      'GET http://app.example.com/x?y=1 HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n',
    );
    expect(text).toContain('"url":"/x?y=1"');
    expect(text).toContain('"host":"app.example.com"');
  });

  test('routes of one application change without the others; a host that has moved stays where it went', async () => {
    const [one, two] = [await mirror('one'), await mirror('two')];
    const front = await openFront([
      routeOf([one]),
      routeOf([two], { application_id: 'app_2', hosts: ['two.example.com'] }),
    ]);
    front.ingress.replaceApplicationRoutes('app_2', [
      routeOf([two], { application_id: 'app_2', hosts: ['two.example.com', 'app.example.com'] }),
    ]);
    front.ingress.replaceApplicationRoutes('app_1', []);
    expect(JSON.parse((await ask(front)).body).name).toBe('two');
    front.ingress.replaceRoutes([]);
    expect((await ask(front)).status).toBe(404);
  });

  test('what was read before does not take the place of what was read after', async () => {
    const [before, after] = [await mirror('before'), await mirror('after')];
    const front = await openFront([routeOf([before])]);
    const [first, second] = [front.ingress.beginRead(), front.ingress.beginRead()];
    front.ingress.replaceApplicationRoutes('app_1', [routeOf([after])], second);
    await front.ingress.drain('ins_before', 0);
    front.ingress.replaceApplicationRoutes('app_1', [routeOf([before])], first);
    expect(JSON.parse((await ask(front)).body).name).toBe('after');
    front.ingress.replaceRoutes([routeOf([before])], first);
    expect(JSON.parse((await ask(front)).body).name).toBe('after');
    front.ingress.replaceRoutes([routeOf([before])]);
    expect(JSON.parse((await ask(front)).body).name).toBe('before');
  });

  test('routes that are about to be true stand against whatever is read meanwhile, and no longer', async () => {
    const [before, after] = [await mirror('before'), await mirror('after')];
    const front = await openFront([routeOf([before])]);
    const answers = async (): Promise<string> => JSON.parse((await ask(front)).body).name;
    const early = front.ingress.beginRead();
    const ended = front.ingress.pinRoutes('app_1', [routeOf([after])]);
    for (const reading of [early, front.ingress.beginRead()]) {
      front.ingress.replaceApplicationRoutes('app_1', [routeOf([before])], reading);
      front.ingress.replaceRoutes([], reading);
      expect(await answers()).toBe('after');
    }
    ended();
    front.ingress.replaceApplicationRoutes('app_1', [routeOf([before])], early);
    expect(await answers()).toBe('after');
    front.ingress.replaceApplicationRoutes('app_1', [routeOf([before])]);
    expect(await answers()).toBe('before');
  });

  test('one is found among 10,000 hosts, and others come and go beside it', async () => {
    const app = await mirror('one');
    const many: Route[] = Array.from({ length: 10_000 }, (_, index) =>
      routeOf([], { application_id: `app_${index}`, hosts: [`h${index}.example.com`] }),
    );
    const front = await openFront([...many, routeOf([app], { application_id: 'app_last' })]);
    const status = async (host?: string): Promise<number> => (await ask(front, host ? { host } : {})).status;
    expect([await status(), await status('h77.example.com'), await status('h78.example.com')]).toEqual([200, 503, 503]);
    front.ingress.replaceApplicationRoutes('app_77', []);
    expect([await status(), await status('h77.example.com'), await status('h78.example.com')]).toEqual([200, 404, 503]);
  });
});

describe('what the instance sees', () => {
  const spoofed = {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'evil.example.com',
    'x-forwarded-port': '1',
    'x-request-id': 'from-the-client-1',
    x_forwarded_for: '203.0.113.9',
    'x-real-ip': '203.0.113.9',
    forwarded: 'for=203.0.113.9',
  };

  test('who asks, as the ingress knows it', async () => {
    const front = await openFront([routeOf([await mirror('one')])]);
    const { headers, raw: lines } = JSON.parse(
      (await ask(front, { host: 'app.example.com:8000', headers: spoofed })).body,
    );
    expect(headers).toMatchObject({
      host: 'app.example.com:8000',
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': 'app.example.com:8000',
      'x-forwarded-port': '8000',
    });
    expect(headers['x-request-id']).toMatch(/^req_/);
    expect(JSON.stringify(lines)).not.toMatch(/203\.0\.113|evil|from-the-client/);
    expect(front.lines[0]).toMatchObject({ client_address: '127.0.0.1', request_id: headers['x-request-id'] });
  });

  test('behind a proxy that is believed, what it says', async () => {
    const front = await openFront([routeOf([await mirror('one')])], { trustProxy: 1 });
    const { headers } = JSON.parse(
      (await ask(front, { headers: { ...spoofed, 'x-forwarded-for': '198.51.100.1, 203.0.113.9' } })).body,
    );
    expect(headers).toMatchObject({
      'x-forwarded-for': '198.51.100.1, 203.0.113.9, 127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-request-id': 'from-the-client-1',
    });
    expect(front.lines[0]).toMatchObject({ client_address: '203.0.113.9', request_id: 'from-the-client-1' });
    const { headers: malformed } = JSON.parse((await ask(front, { headers: { 'x-request-id': 'a b<script>' } })).body);
    expect(malformed['x-request-id']).toMatch(/^req_/);
  });

  test('headers for one connection stay on it, both ways', async () => {
    const app = await startApp((request, response) => {
      response.writeHead(200, {
        connection: 'X-Mine',
        'x-mine': '1',
        'keep-alive': 'timeout=9',
        'proxy-authenticate': 'Basic',
        'x-yours': '1',
      });
      response.end(JSON.stringify(request.headers));
    });
    const front = await openFront([routeOf([app])]);
    const { headers, body } = await ask(front, {
      headers: {
        connection: 'X-Secret, close, Host',
        'x-secret': '1',
        te: 'trailers',
        'proxy-authorization': 'Basic eA==',
        'proxy-connection': 'x',
        'x-kept': '1',
      },
    });
    expect(JSON.parse(body)).toMatchObject({ 'x-kept': '1', host: 'app.example.com' });
    expect(body).not.toMatch(/x-secret|"te"|proxy-/);
    expect(headers).toMatchObject({ 'x-yours': '1' });
    expect(headers).not.toHaveProperty('x-mine');
    expect(headers).not.toHaveProperty('proxy-authenticate');
  });

  test('headers of the answer come as they are, repeated ones included', async () => {
    const app = await startApp((_, response) => {
      response.writeHead(
        299,
        'Fine Enough',
        [
          ['Set-Cookie', 'a=1'],
          ['Set-Cookie', 'b=2'],
          ['X-Case', 'ä'],
        ].flat(),
      );
      response.end();
    });
    const { status, headers, rawHeaders } = await ask(await openFront([routeOf([app])]));
    expect(status).toBe(299);
    expect(headers['set-cookie']).toEqual(['a=1', 'b=2']);
    expect(rawHeaders).toContain('X-Case');
    expect(headers['x-case']).toBe('ä');
  });
});

describe('listening', () => {
  test('a taken port is said by its error', async () => {
    const front = await openFront([]);
    await expect(openFront([], { port: front.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });

  test('also on ::1, where the machine has it', async () => {
    const front = await openFront([routeOf([await mirror('one')])]);
    const hasIt = await new Promise<boolean>((resolve) => {
      const probe = net
        .createServer()
        .on('error', () => resolve(false))
        .listen(0, '::1', () => probe.close(() => resolve(true)));
    });
    const answer = new Promise<number | undefined>((resolve, reject) =>
      http
        .get(
          { host: '::1', port: front.port, agent: false, headers: { host: 'app.example.com' } },
          (response) => (response.resume(), resolve(response.statusCode)),
        )
        .on('error', reject),
    );
    if (hasIt) expect(await answer).toBe(200);
    else await expect(answer).rejects.toThrow();
  });
});
