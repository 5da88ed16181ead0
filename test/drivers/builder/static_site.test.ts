/** @user any */
// What the server of sites keeps to itself.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openStaticSites, summaryOf, type Get } from '../../support/builds/static_sites';

const { workshop, serve, serveFiles } = openStaticSites();

afterAll(() => workshop.close());

describe('a site that is the root directory of its source', () => {
  const sources = [
    'app.py main.go config.php index.php7 lib/db.rb Main.java src/main.rs src/main.ts src/App.tsx src/App.jsx',
    'src/App.vue src/Page.svelte style.scss Program.cs tool.pl native.c Makefile Dockerfile Procfile Gemfile id_rsa',
    'package.json package-lock.json composer.json composer.lock yarn.lock pnpm-lock.yaml bun.lockb tsconfig.app.json',
    'requirements.txt requirements-dev.txt dev_requirements.txt requirements/base.txt pyproject.toml Pipfile',
    'Cargo.toml go.mod go.sum pom.xml web.config appsettings.Production.json serviceAccountKey.json',
    'client_secret_1.json docker-compose.yml config/database.yml values.yaml render.yaml schema.sql dump.sql.gz',
    'db.sqlite3 deploy.sh run.bat server.pem tls.key store.p12 settings.ini terraform.tfvars app.log LICENSE bin/tool',
    'config.php.bak config.php~ index.html.orig vite.config.js webpack.prod.js knexfile.js gulpfile.js',
    'app.config.json _headers templates/page.ejs .env .env.production .git/config .gitignore .htpasswd',
    'sub/.env .well-known/.env',
  ].flatMap((line) => line.split(' '));
  const served = [
    'app.js app.mjs app.css app.js.map data.json config.json manifest.json site.webmanifest robots.txt ads.txt',
    'sitemap.xml feed.rss README.md photo.JPG font.woff2 track.mp3 model.glb game.wasm data.bin book.pdf all.tar.gz',
    'words.txt.gz openapi.yaml admin/config.yml index.yaml node_modules/pkg/dist/pkg.js .well-known/security.txt',
    '.well-known/acme-challenge/token .well-known/apple-app-site-association',
  ].flatMap((line) => line.split(' '));
  const links = {
    'notes.txt': 'app.py',
    'page.html': '.env',
    'folder.css': 'Makefile',
    git: '.git',
    'fine.txt': 'robots.txt',
  };
  let directory: string;
  let get: Get;

  function write(name: string, text: string): void {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
    writeFileSync(path.join(directory, name), text);
  }

  beforeAll(async () => {
    // They come after the plan, which would choose another way to run most of them.
    const built = await workshop.build(workshop.source({ 'index.html': '<h1>home</h1>' }));
    directory = built.directory;
    for (const name of sources) write(name, '{"word": "SECRET"}');
    for (const name of served) write(name, 'public');
    write('_redirects', '/old.php /new 302\n/app.py /new 302\n');
    write('video.ts', 'G'.padEnd(188, 'x') + 'G'.padEnd(188, 'y'));
    for (const [name, target] of Object.entries(links)) symlinkSync(target, path.join(directory, name));
    get = await serve(built);
  });

  test.each(sources.filter((name) => name !== 'app.py'))('%s is not there', async (name) => {
    for (const target of [`/${name}`, `//${name}`, `/${name}/`, `/%${name.charCodeAt(0).toString(16)}${name.slice(1)}`])
      expect(summaryOf(await get(target))).toEqual([404, 'Not found\n']);
  });

  test.each([
    '/app.py.',
    '/app.py%20',
    '/APP.PY',
    '/App.py',
    '/./app.py/.',
    '/src/../config.php',
    '/src%2f..%2fconfig.php',
    '/%2egit/config',
    '/.GIT/config',
    '/git/config',
    '/notes.txt',
    '/page.html',
    '/page',
    '/folder.css',
    '/lib%2fdb.rb',
    '/config%2ephp',
    '/config.php%3fx',
    '/config.php;x',
    '/config.php/x.css',
    '/config.php/x',
    '/config.php~',
    '/Dockerfile/',
    '/_redirects',
    '/.platform/static_server.cjs',
    '/.platform/static.json',
  ])('%s is not there either', async (target) => {
    expect(summaryOf(await get(target))).toEqual([404, 'Not found\n']);
  });

  test.each(served)('%s is served', async (name) => {
    expect(summaryOf(await get(`/${name}`))).toEqual([200, 'public']);
  });

  test('video in .ts is served, TypeScript is not; a link to what is served is', async () => {
    expect(await get('/video.ts')).toMatchObject({ status: 200, headers: { 'content-type': 'video/mp2t' } });
    expect(summaryOf(await get('/fine.txt'))).toEqual([200, 'public']);
  });

  test('a redirect can stand where a source is, and the log of the build names what is not served', async () => {
    expect(await get('/app.py')).toMatchObject({ status: 302, headers: { location: '/new' } });
    const { stdout } = spawnSync('node', ['.platform/static_compress.cjs', 'check', '.'], { cwd: directory });
    expect(stdout.toString()).toMatch(
      /Not served, because the site is the root directory itself: \S+, \S+, \S+ and \d+ more\. What lies/,
    );
  });
});

test('what lies in a directory of the output is served, but for dot files and pages of programs', async () => {
  const get = await serveFiles({
    'package.json': { scripts: { build: 'cp -r src dist && cd dist && cp x.txt config.php && cp x.txt example.py' } },
    'dump.sql': 'SECRET',
    'src/index.html': 'home',
    'src/x.txt': 'text',
    'src/install.sh': 'echo',
    'src/package.json': '{}',
    'src/.env': 'SECRET',
    'src/.well-known/x': 'known',
  });
  for (const name of ['install.sh', 'package.json', 'example.py', '.well-known/x'])
    expect((await get(`/${name}`)).status).toBe(200);
  for (const name of ['.env', 'config.php', 'dump.sql', '../dump.sql', '..%2fdump.sql'])
    expect((await get(`/${name}`)).status).toBe(404);
});

test('a link that makes the source its own output changes nothing', async () => {
  const get = await serveFiles({
    'package.json': { scripts: { build: 'ln -s . dist' } },
    'index.html': 'home',
    'dump.sql': 'SECRET',
  });
  for (const target of ['/dump.sql', '/package.json', '/dist/dump.sql'])
    expect(summaryOf(await get(target))).toEqual([404, 'Not found\n']);
});
