// Start scripts that start the server of a bundler or framework for development. It builds in memory, takes a place of
// its own choice, refuses host names that it does not know, and is not made for the public: what the build script
// leaves is served instead.
import type { Package } from './node/package_json';
import type { SourceFiles } from './source_files';

/** By program: the words after it that start such a server; a program without any does by itself. */
const servers: [program: string, words: RegExp][] = [
  ['react-scripts', /^start\b/],
  ['react-app-rewired', /^start\b/],
  ['craco', /^start\b/],
  // A word that is no command is the root directory of the server.
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
/** Their build leaves a server that nothing is known of here: no site. */
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
/** Of which a site is made all the same. */
const siteAdapters = ['@sveltejs/adapter-static'];

const runners =
  /^(?:npx|bunx|pnpx|(?:pnpm|yarn|npm) (?:exec|dlx)(?: --)?|pnpm|yarn|bun|cross-env(?:-shell)?|env|dotenv)\s+/;
const assignment = /^[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|\S*)\s+/;
const otherScript = /^(?:npm run|npm run-script|yarn run|yarn|pnpm run|pnpm|bun run)\s+([\w:.-]+)\s*$/;
const SCRIPTS_MAX = 5;

/** `vite`, of a start script that does nothing else than start it; null for all others. */
export function developmentServer({ scripts }: Pick<Package, 'scripts'>): string | null {
  let line = (scripts.start ?? '').trim();
  for (let i = 0; i < SCRIPTS_MAX; i++) {
    const name = otherScript.exec(line)?.[1];
    const next = name === undefined ? undefined : scripts[name];
    if (next === undefined) break;
    line = next.trim();
  }
  // Of several commands one may be the server that is meant.
  if (/[|&;<>`\n]|\$\(/.test(line)) return null;
  const [program = '', ...words] = withoutRunners(line).split(/\s+/);
  const known = servers.find(([name]) => name === program);
  return known?.[1].test(words.join(' ')) ? [program, ...words.slice(0, 1)].join(' ') : null;
}

const PRODUCTION_SCRIPTS = ['start:prod', 'start:production'];

/**
 * The script that the source has for production, where its start script is for development: also `nest start`, which
 * compiles what was built once more. null where there is none.
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
  const rest = line.replace(runners, '').replace(assignment, '');
  return rest === line ? line : withoutRunners(rest);
}

/** Whether there is a build whose result can be served instead. */
export function canServeBuild({ scripts, dependencyNames }: Package): boolean {
  if (scripts.build === undefined) return false;
  const has = (name: string): boolean => dependencyNames.has(name);
  return !withServers.some(has) || siteAdapters.some(has);
}

/** @param isReplaced whether something else is served instead */
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

/** Where Angular's build leaves its site: a folder for each project. */
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

// The path of newer versions is dist/ and the name of the project where none is stated.
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
    // `ng build` says what is wrong with it.
    return [];
  }
}
