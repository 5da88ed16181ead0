// Paths go to applications byte for byte as they came, whether or not anything can decode them. What is no path at all
// is refused, and the ingress goes on.
import { closeAll, openFront, raw, routeOf, startApp, type Front } from '../../support/ingress/ingress';

let front: Front;
const seen: string[] = [];
beforeAll(async () => {
  const app = await startApp((request, response) => {
    seen.push(request.url ?? '');
    response.end('here');
  });
  front = await openFront([routeOf([app])]);
});
afterAll(closeAll);

const ask = (target: string): Promise<string> =>
  raw(
    front.port,
    Buffer.from(`GET ${target} HTTP/1.1\r\nHost: app.example.com\r\nConnection: close\r\n\r\n`, 'latin1'),
  );

const TARGETS = ['/%E0', '/%ff%fe', '/%zz', '/%', '/%00', '/?%E0=%zz', `/${'a'.repeat(8_000)}`];

test.each(TARGETS.map((target) => [target.slice(0, 20), target]))('%s', async (_, target = '') => {
  const answer = await ask(target);
  expect([answer.split('\r\n')[0], seen.pop()]).toEqual(['HTTP/1.1 200 OK', target]);
});

const REFUSED = { 'NUL at the begin': '\0', NUL: '/a\0b', control: '/\x01', 'no end': `/${'a'.repeat(200_000)}` };

test.each(Object.entries(REFUSED))('%s', async (_, target) => {
  expect(await ask(target)).toMatch(/^HTTP\/1\.1 (400|414|431) /);
  expect(seen).toEqual([]);
  expect(await ask('/')).toContain('here');
  expect(seen.pop()).toBe('/');
});
