// Detects start scripts that run the development server of a bundler or framework. Such a server builds in memory,
// chooses its own port, rejects unknown host names, and is not meant for production: the output of the build script is
// served instead.
import type { Package } from './node/package_json';
import type { SourceFiles } from './source_files';

/** By program: arguments that start a development server. */
const servers: [program: string, words: RegExp][] = [
  ['react-scripts', /^start\b/],
  ['react-app-rewired', /^start\b/],
  ['craco', /^start\b/],
  // An argument that is not a command is the root directory of the server.
  ['vite', /^(?!build\b|optimize\b|-v\b|--version\b|-h\b|--help\b)/],
  ['rolldown-vite', /^(?!build\b)/],
  ['vue-cli-service', /^serve\b/],
  ['webpack', /^(?:serve|server|s)\b|--serve\b/],
  ['webpack-cli', /^(?:serve|server|s)\b/],
  ['webpack-dev-server', /^/],
  ['rspack', /^(?:serve|server|dev|s)\b/],
  ['rsbuild', /^(?:dev\b|preview\b|$)/],
  ['parcel', /^(?!build\b|watch\b|help\b)/],
  ['ng', /^(?:serve|s|dev)\b/],
  ['gatsby', /^(?:develop|serve)\b/],
  ['astro', /^(?:dev|start|preview)\b/],
  ['snowpack', /^(?:dev|start)\b/],
  ['preact', /^watch\b/],
  ['ember', /^(?:serve|server|s)\b/],
  ['docusaurus', /^(?:start|serve)\b/],
  ['eleventy', /--serve\b/],
  ['@11ty/eleventy', /--serve\b/],
  ['gridsome', /^develop\b/],
  ['next', /^dev\b/],
  ['nuxt', /^(?:dev\b|$)/],
  ['nuxi', /^dev\b/],
  ['remix', /^(?:dev|vite:dev)\b/],
  ['react-router', /^dev\b/],
  ['vinxi', /^dev\b/],
  ['nitropack', /^dev\b/],
];
/** Frameworks whose build output is a server that is not supported here, not a site. */
const withServers = [
  '@sveltejs/kit',
  '@builder.io/qwik-city',
  '@qwik.dev/router',
  '@remix-run/dev',
  '@react-router/dev',
  'vike',
  'vite-plugin-ssr',
  'waku',
];
/** Adapters that make a site nevertheless. */
const siteAdapters = ['@sveltejs/adapter-static'];

const runners =
  /^(?:npx|bunx|pnpx|(?:pnpm|yarn|npm) (?:exec|dlx)(?: --)?|pnpm|yarn|bun|cross-env(?:-shell)?|env|dotenv)\s+/;
const assignment = /^[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|\S*)\s+/;
const otherScript = /^(?:npm run|npm run-script|yarn run|yarn|pnpm run|pnpm|bun run)\s+([\w:.-]+)\s*$/;
const SCRIPTS_MAX = 5;
const RUNNERS_MAX = 20;

/** The development server (`vite`) started by a start script that does nothing else; null otherwise. */
export function developmentServer({ scripts }: Pick<Package, 'scripts'>): string | null {
  let line = (scripts.start ?? '').trim();
  for (let i = 0; i < SCRIPTS_MAX; i++) {
    const name = otherScript.exec(line)?.[1];
    const next = name === undefined ? undefined : scripts[name];
    if (next === undefined) break;
    line = next.trim();
  }
  // In a list of commands, another one may be the intended server.
  if (/[|&;<>`\n]|\$\(/.test(line)) return null;
  const [program = '', ...words] = withoutRunners(line).split(/\s+/);
  const known = servers.find(([name]) => name === program);
  return known?.[1].test(words.join(' ')) ? [program, ...words.slice(0, 1)].join(' ') : null;
}

const PRODUCTION_SCRIPTS = ['start:prod', 'start:production'];

/**
 * The production script of a source whose start script is for development; also for `nest start`, which compiles again.
 * null where there is none.
 */
export function productionScript({ scripts }: Pick<Package, 'scripts'>): string | null {
  if (scripts.build === undefined) return null;
  const isForDevelopment = /^nest start\b/.test(scripts.start ?? '') || developmentServer({ scripts }) !== null;
  const isFit = (name: string): boolean =>
    scripts[name] !== undefined && developmentServer({ scripts: { ...scripts, start: scripts[name] } }) === null;
  return (isForDevelopment && PRODUCTION_SCRIPTS.find(isFit)) || null;
}

export function productionNote(server: string, script: string): string {
  return `The start script calls \`${server}\`, which is for development, so the script \`${script}\` runs instead.`;
}

function withoutRunners(line: string): string {
  let rest = line;
  // A longer row of them is nothing that people write.
  for (let i = 0; i < RUNNERS_MAX; i++) rest = rest.replace(runners, '').replace(assignment, '');
  return rest;
}

/** Whether the output of a build can be served instead. */
export function canServeBuild({ scripts, dependencyNames }: Package): boolean {
  if (scripts.build === undefined) return false;
  const has = (name: string): boolean => dependencyNames.has(name);
  return !withServers.some(has) || siteAdapters.some(has);
}

/** @param isReplaced whether the build output is served instead */
export function developmentServerNote(server: string, isReplaced: boolean): string {
  if (isReplaced)
    return (
      `The start script calls \`${server}\`, a server for development, so what the build script leaves is served ` +
      'instead. To start another program, change the start script or add a Procfile.'
    );
  return (
    `The start script calls \`${server}\`, a server for development: slow, and closed to host names that it does not ` +
    'know. Add a script `build`, or start a server that is made for the public.'
  );
}

/** Output directories of Angular: one per project. */
export async function angularDirectories(files: SourceFiles): Promise<string[]> {
  const text = await files.read('angular.json');
  const paths = text === null ? [] : outputPaths(text);
  return paths
    .filter((path) => /^\w[\w./@-]*$/.test(path) && !path.includes('..'))
    .flatMap((path) => [`${path.replace(/\/$/, '')}/browser`, path.replace(/\/$/, '')]);
}

interface AngularProject {
  architect?: { build?: { options?: { outputPath?: string | { base?: string } } } };
}

// In newer versions, the default path is dist/ and the name of the project.
function outputPaths(text: string): string[] {
  try {
    const { projects = {}, defaultProject } = JSON.parse(text) as {
      projects?: Record<string, AngularProject>;
      defaultProject?: string;
    };
    const names = Object.keys(projects).sort((a, b) => Number(b === defaultProject) - Number(a === defaultProject));
    return names.map((name) => {
      const stated = projects[name]?.architect?.build?.options?.outputPath;
      return (typeof stated === 'object' ? stated.base : stated) ?? `dist/${name}`;
    });
  } catch {
    // Reported by `ng build`.
    return [];
  }
}
