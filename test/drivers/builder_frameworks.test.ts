/** @user any */
// Frameworks whose build script leaves a server: it starts where package.json names no start script.
import { detect, setUpPlans } from '../support/plans';

setUpPlans();

const web = async (dependency: string, build: string, more: object = {}): Promise<string | undefined> =>
  (await detect({ 'package.json': { devDependencies: { [dependency]: '1' }, scripts: { build, ...more } } })).processes
    .web;

test.each([
  ['nuxt', 'nuxt build', 'node .output/server/index.mjs'],
  ['nitropack', 'nitropack build', 'node .output/server/index.mjs'],
  ['@solidjs/start', 'vinxi build', 'node .output/server/index.mjs'],
  ['@sveltejs/adapter-node', 'vite build', 'node build/index.js'],
  ['@astrojs/node', 'astro build', 'env HOST=127.0.0.1 node dist/server/entry.mjs'],
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
