// Which instance gets a request.
import { ask, closeAll, mirror, openFront, routeOf, startApp, until } from '../../support/ingress/ingress';

afterEach(closeAll);

test('in turn among equals, the least busy first', async () => {
  const held: (() => void)[] = [];
  const counts = { a: 0, b: 0 };
  const app = (name: 'a' | 'b') =>
    startApp((request, response) => {
      counts[name] += 1;
      if (request.url === '/hold') held.push(() => response.end());
      else response.end(name);
    });
  const front = await openFront([routeOf([await app('a'), await app('b')])]);
  for (let index = 0; index < 10; index += 1) await ask(front);
  expect(counts).toEqual({ a: 5, b: 5 });
  const first = ask(front, { path: '/hold' });
  await until(() => held.length === 1);
  const bodies = [];
  for (let index = 0; index < 4; index += 1) bodies.push((await ask(front)).body);
  expect(new Set(bodies).size).toBe(1);
  held.forEach((release) => release());
  await first;
});

test('a sticky route keeps a visitor with an instance while it is there', async () => {
  const apps = [await mirror('a'), await mirror('b'), await mirror('c')];
  const front = await openFront([routeOf(apps, { sticky: true })]);
  const { headers, body } = await ask(front);
  const [cookie = ''] = headers['set-cookie'] ?? [];
  expect(cookie).toMatch(/^platform_instance=[\w-]{22}; Path=\/; HttpOnly; SameSite=Lax$/);
  expect(cookie).not.toContain('ins_');
  const name = JSON.parse(body).name;
  for (let index = 0; index < 6; index += 1) {
    const again = await ask(front, { headers: { cookie: `a=b; ${cookie.split(';')[0]}` } });
    expect(JSON.parse(again.body).name).toBe(name);
    expect(again.headers['set-cookie']).toBeUndefined();
  }
  const left = apps.filter((_, index) => 'abc'[index] !== name);
  front.ingress.replaceApplicationRoutes('app_1', [routeOf(left, { sticky: true })]);
  const moved = await ask(front, { headers: { cookie: cookie.split(';')[0] } });
  expect(JSON.parse(moved.body).name).not.toBe(name);
  expect(moved.headers['set-cookie']).toHaveLength(1);
});
