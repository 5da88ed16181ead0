// Paths that nobody may have written: whatever route they are below, they get a problem document and leave no trace.
import { connect } from 'node:net';
import { startService, type TestService } from '../support/service';

let service: TestService;
beforeAll(async () => void (service = await startService()));
afterAll(() => service.close());

/** Sends a request line as it is. @returns status, content type and body */
function send(method: string, target: string, accept = 'text/html'): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(service.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => (text += part));
    socket.on('end', () => resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), text }));
    socket.on('error', reject);
    const lines = [`${method} ${target} HTTP/1.1`, 'Host: localhost', `Accept: ${accept}`, 'Connection: close'];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  });
}

const ROOTS = [
  ...[
    '',
    '/x',
    '/assets',
    '/applications',
    '/projects/prj_1',
    '/graphql',
    '/healthz',
    '/v2',
    '/v2/docs',
    '/v2/volumes',
  ],
  ...['/oauth', '/oauth/device', '/account', '/login/with', '/hooks/git', '/mail/links', '/downloads', '/uploads'],
  ...['/.well-known', '/probes'],
];
const ENDINGS: [name: string, ending: string][] = [
  ['a cut sequence of UTF-8', '/%E0'],
  ['bytes that are no UTF-8', '/%ff%fe'],
  ['no hexadecimal digits', '/%zz'],
  ['a cut escape', '/%'],
  ['NUL', '/%00'],
];

describe.each(ROOTS)('below %p', (root) => {
  test.each(ENDINGS)('%s is a malformed request', async (_, ending) => {
    for (const method of ['GET', 'POST'])
      for (const accept of ['text/html', '*/*']) {
        const { status, text } = await send(method, root + ending, accept);
        expect([method, accept, status, text]).toEqual([
          ...[method, accept, 400],
          expect.stringContaining('"code":"malformed_request"'),
        ]);
        expect(text).toContain('application/problem+json');
        expect(text).not.toMatch(/URIError|node_modules|\.ts:\d/);
      }
  });
});

test('a path beyond the limit of headers is refused, one below it is a page like any other', async () => {
  expect((await send('GET', `/${'a'.repeat(20_000)}`)).text).toContain('"code":"headers_too_large"');
  const { status, text } = await send('GET', `/${'a'.repeat(12_000)}`, '*/*');
  expect([status, text]).toEqual([404, expect.stringContaining('"code":"route_not_found"')]);
});

test('bytes that are no text are refused, or are a page like any other', async () => {
  for (const target of ['/\0', '/v2/\0', '/x\x01y']) {
    const { status, text } = await send('GET', target, '*/*');
    expect([target, status]).toEqual([target, 400]);
    expect(text).toContain('"code":"malformed_request"');
  }
  expect((await send('GET', '/\x80\xff', '*/*')).status).toBeGreaterThanOrEqual(400);
});
