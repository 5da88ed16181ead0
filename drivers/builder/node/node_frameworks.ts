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
