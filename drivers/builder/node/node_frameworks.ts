// Servers built by frameworks, for a package.json without a start script.
import type { Package } from './package_json';
import { LISTEN } from '../listen';
import type { SourceFiles } from '../source_files';

interface FrameworkServer {
  packages: string[];
  command: string;
}

// Each reads PORT. By default, Astro listens on localhost, which may be ::1 only.
const known: FrameworkServer[] = [
  {
    packages: [
      'nuxt',
      'nuxt3',
      'nuxt-edge',
      'nitropack',
      'nitro',
      'vinxi',
      '@solidjs/start',
      '@tanstack/react-start',
      '@analogjs/platform',
    ],
    command: 'node .output/server/index.mjs',
  },
  { packages: ['@sveltejs/adapter-node'], command: 'node build/index.js' },
  { packages: ['@astrojs/node'], command: `env HOST=${LISTEN} node dist/server/entry.mjs` },
  { packages: ['@remix-run/serve'], command: 'remix-serve build/server/index.js' },
  { packages: ['@react-router/serve'], command: 'react-router-serve build/server/index.js' },
  { packages: ['next'], command: 'next start' },
  { packages: ['@nestjs/core'], command: 'node dist/main.js' },
];

interface Framework {
  title: string;
  /** What its build script calls, where its output is a site or a server. */
  build?: string;
}

/** In the order of their names in messages: what is built on others first. */
const frameworks: [name: string, framework: Framework][] = [
  ['next', { title: 'Next.js', build: 'next build' }],
  ['nuxt', { title: 'Nuxt', build: 'nuxt build' }],
  ['@redwoodjs/core', { title: 'RedwoodJS' }],
  ['@strapi/strapi', { title: 'Strapi', build: 'strapi build' }],
  ['@adonisjs/core', { title: 'AdonisJS' }],
  ['@feathersjs/feathers', { title: 'Feathers' }],
  ['@nestjs/core', { title: 'NestJS', build: 'nest build' }],
  ['@sveltejs/kit', { title: 'SvelteKit', build: 'vite build' }],
  ['@react-router/dev', { title: 'React Router', build: 'react-router build' }],
  ['@remix-run/dev', { title: 'Remix', build: 'remix vite:build' }],
  ['astro', { title: 'Astro', build: 'astro build' }],
  ['@docusaurus/core', { title: 'Docusaurus', build: 'docusaurus build' }],
  ['vitepress', { title: 'VitePress', build: 'vitepress build docs' }],
  ['vuepress', { title: 'VuePress', build: 'vuepress build docs' }],
  ['@11ty/eleventy', { title: 'Eleventy', build: 'eleventy' }],
  ['gatsby', { title: 'Gatsby', build: 'gatsby build' }],
  ['hexo', { title: 'Hexo', build: 'hexo generate' }],
  ['@angular/core', { title: 'Angular', build: 'ng build' }],
  ['react-scripts', { title: 'Create React App', build: 'react-scripts build' }],
  ['@vue/cli-service', { title: 'Vue CLI', build: 'vue-cli-service build' }],
  ['elysia', { title: 'Elysia' }],
  ['hono', { title: 'Hono' }],
  ['fastify', { title: 'Fastify' }],
  ['koa', { title: 'Koa' }],
  ['@hapi/hapi', { title: 'hapi' }],
  ['restify', { title: 'Restify' }],
  ['express', { title: 'Express' }],
  ['socket.io', { title: 'Socket.IO' }],
  ['discord.js', { title: 'discord.js' }],
  ['vite', { title: 'Vite', build: 'vite build' }],
  ['parcel', { title: 'Parcel', build: 'parcel build' }],
  ['webpack', { title: 'webpack', build: 'webpack' }],
];
const serverTitles = new Set(['Elysia', 'Hono', 'Fastify', 'Koa', 'hapi', 'Restify', 'Express', 'Socket.IO']);

/** The first framework of the list among the dependencies. */
export function frameworkOf({ dependencyNames }: Package): Framework | null {
  return frameworks.find(([name]) => dependencyNames.has(name))?.[1] ?? null;
}

/** Whether its framework makes servers, which are no sites. */
export function runsServer(found: Package): boolean {
  return serverTitles.has(frameworkOf(found)?.title ?? '');
}

/** null where the build output is a site, or unknown. */
export async function frameworkServer(
  { dependencyNames, scripts }: Package,
  files: SourceFiles,
): Promise<string | null> {
  const build = scripts.build ?? '';
  if (build === '' || /\bgenerate\b|\bexport\b|--prerender\b|--preset[= ](?:static|github)/.test(build)) return null;
  const found = known.find(({ packages }) => packages.some((name) => dependencyNames.has(name)));
  if (found?.packages.includes('next') && (await exportsSite(files))) return null;
  return found?.command ?? null;
}

async function exportsSite(files: SourceFiles): Promise<boolean> {
  for (const ending of ['js', 'mjs', 'cjs', 'ts', 'mts'])
    if (/\boutput\s*:\s*['"`]export/.test((await files.read(`next.config.${ending}`)) ?? '')) return true;
  return false;
}
