/** @user any */
// Frameworks whose build script leaves a server: it starts where package.json names no start script.
import { detect, setUpPlans } from '../../support/deployments/plans';

setUpPlans();

const web = async (dependency: string, build: string, more: object = {}): Promise<string | undefined> =>
  (await detect({ 'package.json': { devDependencies: { [dependency]: '1' }, scripts: { build, ...more } } })).processes
    .web;

test.each([
  ['nuxt', 'nuxt build', 'node .output/server/index.mjs'],
  ['nitropack', 'nitropack build', 'node .output/server/index.mjs'],
  ['@solidjs/start', 'vinxi build', 'node .output/server/index.mjs'],
  ['@sveltejs/adapter-node', 'vite build', 'node build/index.js'],
  ['@astrojs/node', 'astro build', 'env HOST=${SVC_LISTEN_ADDRESS:-127.0.0.1} node dist/server/entry.mjs'],
  ['@remix-run/serve', 'remix vite:build', 'remix-serve build/server/index.js'],
  ['@react-router/serve', 'react-router build', 'react-router-serve build/server/index.js'],
  ['next', 'next build', 'next start'],
  ['@nestjs/core', 'nest build', 'node dist/main.js'],
])('%s, built by `%s`: %s', async (dependency, build, command) => {
  expect(await web(dependency, build)).toBe(command);
  expect(await web(dependency, build, { start: 'node own.js' })).toBe('node own.js');
});

test('what makes a site stays a site', async () => {
  for (const [dependency, build] of [
    ['nuxt', 'nuxt generate'],
    ['astro', 'astro build'],
    ['vite', 'vite build'],
  ])
    expect(await web(dependency!, build!)).toMatch(/static_server\.cjs dist /);
  expect((await detect({ 'package.json': { dependencies: { nuxt: '4' } } })).processes).toEqual({});
});

describe('a start script that starts a server for development', () => {
  const plan = (start: string, scripts: object = { build: 'x build' }, dependencies: object = {}, more: object = {}) =>
    detect({ 'package.json': { dependencies, scripts: { start, ...scripts } }, ...more });

  test.each([
    ['react-scripts start', 'react-scripts start'],
    ['cross-env PORT=3000 HOST=0.0.0.0 react-scripts start', 'react-scripts start'],
    ['HOST="0.0.0.0" npx craco start', 'craco start'],
    ['vite', 'vite'],
    ['vite --host 0.0.0.0 --port $PORT', 'vite --host'],
    ['vite start', 'vite start'],
    ['vite preview', 'vite preview'],
    ['pnpm exec vite dev', 'vite dev'],
    ['vue-cli-service serve', 'vue-cli-service serve'],
    ['webpack serve --mode development', 'webpack serve'],
    ['webpack-dev-server --open', 'webpack-dev-server --open'],
    ['ng serve', 'ng serve'],
    ['parcel src/index.html', 'parcel src/index.html'],
    ['gatsby develop', 'gatsby develop'],
    ['astro dev', 'astro dev'],
    ['npm run dev', 'vite'],
  ])('%s: the site of the build script is served, and a note says so', async (start, server) => {
    const { processes, kind, notes } = await plan(start, { build: 'x build', dev: 'vite' });
    expect([kind, processes.web]).toEqual(['static', expect.stringContaining('static_server.cjs dist build')]);
    expect(notes).toEqual([expect.stringContaining(`calls \`${server}\`, a server for development, so what`)]);
  });

  test.each([
    'node server.js',
    'vite build && node server.js',
    'concurrently "vite" "node api.js"',
    'serve -s build',
    'webpack --watch',
    'nest start',
    'next start',
    'gatsby build',
    'ts-node src/vite.ts',
    'nodemon --exec vite-node server.ts',
    'npm run server',
  ])('%s is none', async (start) => {
    const { processes, notes } = await plan(start);
    expect([processes.web, notes]).toEqual([start === 'node server.js' ? start : 'npm start', undefined]);
  });

  test.each([
    ['nest start', 'node dist/main', 'node dist/main'],
    ['nest start --watch', 'NODE_ENV=production node dist/main', 'npm run start:prod'],
    ['vite', 'node server.js', 'node server.js'],
  ])('%s gives way to a script for production: %s', async (start, production, command) => {
    const { processes, notes } = await plan(start, { build: 'nest build', 'start:prod': production });
    expect([processes.web, notes]).toEqual([
      command,
      [expect.stringMatching(/so the script `start:prod` runs instead/)],
    ]);
    const own = await plan('node own.js', { build: 'x', 'start:prod': production });
    expect([own.processes.web, own.notes]).toEqual(['node own.js', undefined]);
    const other = await plan(start, { build: 'x build', 'start:prod': 'vite preview' });
    expect(other.processes.web).not.toMatch(/start:prod|vite/);
  });

  test('gives way to the server of the framework, or to that of the source', async () => {
    expect((await plan('next dev', { build: 'next build' }, { next: '15' })).processes.web).toBe('next start');
    const ssr = await plan('vite start', { build: 'vite build' }, { '@tanstack/react-start': '1' });
    expect(ssr.processes.web).toBe('node .output/server/index.mjs');
    const own = { 'server.js': `require('http').createServer(() => {}).listen(process.env.PORT)` };
    expect((await plan('react-scripts start', undefined, {}, own)).processes.web).toBe('node server.js');
  });

  test('starts where there is nothing else, and a note says what it is', async () => {
    const noBuild = await plan('vite', {});
    const unknown = await plan('vite dev', { build: 'vite build' }, { '@sveltejs/kit': '2' });
    for (const { processes, notes } of [noBuild, unknown])
      expect([processes.web, notes]).toEqual(['npm start', [expect.stringMatching(/a server for development: slow/)]]);
  });

  test('Angular leaves its site in a folder of the project', async () => {
    const angular = (build: object) => ({ 'angular.json': { projects: { shop: { architect: { build } } } } });
    const site = async (build: object) =>
      (await plan('ng serve', { build: 'ng build' }, {}, angular(build))).processes.web;
    expect(await site({})).toContain('static_server.cjs dist/shop/browser dist/shop dist ');
    expect(await site({ options: { outputPath: 'public/web/' } })).toContain('public/web/browser public/web dist ');
    expect(await site({ options: { outputPath: { base: 'out/shop' } } })).toContain('out/shop/browser out/shop dist ');
    expect(await site({ options: { outputPath: '$(touch x)' } })).toContain('static_server.cjs dist ');
    expect(await site({ options: { outputPath: '../../etc' } })).toContain('static_server.cjs dist ');
  });
});
