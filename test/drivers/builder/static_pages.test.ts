/** @user any */
// Paths of a site that no file answers: pages of routers in the browser, and the rules of _redirects.
import { openStaticSites, summaryOf } from '../../support/builds/static_sites';

const { workshop, serveFiles } = openStaticSites();

afterAll(() => workshop.close());

describe('pages of a router in the browser', () => {
  const app = { 'package.json': { scripts: { build: 'cp -r src dist' } }, 'src/index.html': 'app' };

  test('one index.html and no 404.html: paths of pages get it, those of files do not', async () => {
    const get = await serveFiles({
      ...app,
      'src/assets/app.js': 'x',
      'src/about.html': 'about',
      'index.html': 'source',
    });
    for (const target of [
      '/dashboard',
      '/users/7/',
      '/users/john.doe',
      '/v1.2',
      '/at/ada@example.com',
      '/caf%C3%A9?x=1',
    ])
      expect(await get(target)).toMatchObject({
        status: 200,
        headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'public, max-age=0, must-revalidate' },
        body: Buffer.from('app'),
      });
    expect(await get('/dashboard', {}, 'HEAD')).toMatchObject({ status: 200, headers: { 'content-length': '3' } });
    expect((await get('/dashboard', {}, 'POST')).status).toBe(405);
    for (const target of [
      '/assets/app.123.js',
      '/logo.png',
      '/favicon.ico',
      '/wp-login.php',
      '/x.env',
      '/a.js/',
      '/.env',
    ])
      expect(summaryOf(await get(target))).toEqual([404, 'Not found\n']);
    for (const target of ['/about', '/about/', '/about.html'])
      expect(summaryOf(await get(target))).toEqual([200, 'about']);
    expect((await get('/about.html/')).status).toBe(404);
  });

  test('two index.html, or a 404.html: not by itself', async () => {
    const two = await serveFiles({ ...app, 'src/docs/index.html': 'docs' });
    expect(summaryOf(await two('/dashboard'))).toEqual([404, 'Not found\n']);
    const own = await serveFiles({ ...app, 'src/404.html': 'lost' });
    expect(summaryOf(await own('/dashboard'))).toEqual([404, 'lost']);
  });

  test('200.html answers for pages that are not there, beside a 404.html for files', async () => {
    const get = await serveFiles({ 'index.html': 'home', '200.html': 'app', '404.html': 'lost' });
    expect(summaryOf(await get('/some/where'))).toEqual([200, 'app']);
    for (const target of ['/.env', '/app.js']) expect(summaryOf(await get(target))).toEqual([404, 'lost']);
  });
});

describe('_redirects', () => {
  test('rules in their order, after files unless forced', async () => {
    const get = await serveFiles({
      'index.html': 'home',
      'docs/index.html': 'docs',
      '404.html': 'lost',
      'gone.html': 'gone',
      'old.html': 'old',
      _redirects: [
        '# of another host',
        '/blog/:year/:slug /posts/:slug?year=:year 302 # kept',
        '/news/*  https://news.example.com/archive/:splat  301',
        '/old /new 308!',
        '/index /never',
        '/plain /there',
        '/gone/* /gone.html 404',
        '/admin/* /docs/ 200',
        '/missing /nothing.html 200',
        '/* /index.html 200',
      ].join('\r\n'),
    });
    const led = async (target: string) => {
      const { status, headers } = await get(target);
      return [status, headers.location];
    };
    expect(await led('/blog/2024/caf%C3%A9?x=1')).toEqual([302, '/posts/caf%C3%A9?year=2024']);
    expect(await led('/news/a/b%2520?x=1')).toEqual([301, 'https://news.example.com/archive/a/b%2520?x=1']);
    expect(await led('/news')).toEqual([301, 'https://news.example.com/archive/']);
    expect(await led('/old')).toEqual([308, '/new']);
    expect(await led('/plain/?y=2')).toEqual([301, '/there?y=2']);
    expect(summaryOf(await get('/index'))).toEqual([200, 'home']);
    expect(summaryOf(await get('/gone/x'))).toEqual([404, 'gone']);
    expect(summaryOf(await get('/admin/users'))).toEqual([200, 'docs']);
    expect(summaryOf(await get('/missing'))).toEqual([404, 'lost']);
    expect(summaryOf(await get('/deep/link'))).toEqual([200, 'home']);
    expect(summaryOf(await get('/assets/app.123.js'))).toEqual([404, 'lost']);
    expect((await led('/news//example.org/%0d%0aset-cookie:a'))[1]).toMatch(
      /^https:\/\/news\.example\.com\/archive\/example\.org\/%0D%0Aset-cookie%3Aa$/,
    );
  });

  test('`/* /404.html 404` switches pages of a router off', async () => {
    const get = await serveFiles({ 'index.html': 'home', _redirects: '/* /404.html 404' });
    expect(summaryOf(await get('/dashboard'))).toEqual([404, 'Not found\n']);
  });

  test.each([
    ['/a', /^Line 2 of _redirects is not of the form/],
    ['/a /b 418', /has the status 418, which is none of 200, 301/],
    ['/a /b 301 Country=au', /has "Country=au"\. Conditions are not supported/],
    ['/a id=:id /b', /has "id=:id"\. Conditions/],
    ['/a /b often', /has "often"/],
    ['/a/*/b /c', /has a \* that is not its last part/],
    ['/a* /c', /has a \* that/],
    ['/a?x=1 /c', /matches a query/],
    ['https://example.com/a /c', /begins with "https:.* is not a path/],
    ['/a //example.com', /neither a path nor/],
    ['/a javascript:x', /neither a path nor/],
    ['/api/* https://api.example.com/:splat 200', /fetches from another host, which is not supported/],
    ['/:host https://:host/', /placeholder in the name of a host/],
    ['/a /b/:c', /uses :c, which its first path does not have/],
    ['/* /:splat/:other', /uses :other/],
  ])('%s fails the build', async (line, words) => {
    const built = await workshop.build(workshop.source({ 'index.html': '', _redirects: `# first\n${line}\n` }));
    expect(built.code).toBe(1);
    expect(built.output.split('\n').some((one) => words.test(one.replace(/^.*?Line/, 'Line')))).toBe(true);
  });

  test('_headers is not passed over in silence', async () => {
    const built = await workshop.build(workshop.source({ 'index.html': '', _headers: '/*\n  X-A: b\n' }));
    expect(built).toMatchObject({ code: 0, output: expect.stringContaining('_headers is not supported') });
  });
});
