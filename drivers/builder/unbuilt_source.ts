// Detects programs that no builder of this platform supports. If there is one, the files are not published as a site:
// the program would never run, and visitors would read its source.
import path from 'node:path';
import { BuildError } from '../builder';
import { isNodeServer } from './server_file';
import type { SourceFiles } from './source_files';

export interface UnbuiltSource {
  /** Relative to the root directory. */
  file: string;
  language: string;
}

const manifestNames: Record<string, string[]> = {
  PHP: ['composer.json', 'composer.lock', 'artisan'],
  Ruby: ['Gemfile', 'Gemfile.lock', 'gems.rb', 'config.ru'],
  Rust: ['Cargo.toml', 'Cargo.lock'],
  Java: ['pom.xml', 'build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts'],
  Scala: ['build.sbt', 'build.sc'],
  Clojure: ['project.clj', 'deps.edn'],
  Elixir: ['mix.exs'],
  Erlang: ['rebar.config'],
  Gleam: ['gleam.toml'],
  Deno: ['deno.json', 'deno.jsonc', 'deno.lock'],
  Swift: ['Package.swift'],
  Dart: ['pubspec.yaml'],
  Crystal: ['shard.yml'],
  Haskell: ['stack.yaml', 'cabal.project'],
  Perl: ['cpanfile', 'Makefile.PL'],
  Julia: ['Project.toml'],
  Zig: ['build.zig'],
  D: ['dub.json', 'dub.sdl'],
  OCaml: ['dune-project'],
  'C++': ['CMakeLists.txt', 'meson.build'],
  Python: ['Pipfile', 'Pipfile.lock', 'setup.py', 'setup.cfg', 'manage.py', 'environment.yml'],
};
const manifestEndings: Record<string, string[]> = {
  '.NET': ['.csproj', '.fsproj', '.vbproj', '.sln', '.slnx'],
  Haskell: ['.cabal'],
  Nim: ['.nimble'],
};
const sourceEndings: Record<string, string[]> = {
  PHP: ['.php', '.phtml', '.php3', '.php4', '.php5', '.php7', '.php8', '.phps'],
  Python: ['.py', '.pyw'],
  Ruby: ['.rb', '.ru', '.erb', '.rhtml'],
  Go: ['.go'],
  Rust: ['.rs'],
  Java: ['.java', '.jsp', '.jspx'],
  Kotlin: ['.kt', '.kts'],
  Scala: ['.scala'],
  Groovy: ['.groovy'],
  Clojure: ['.clj', '.cljc'],
  '.NET': ['.cs', '.vb', '.cshtml', '.razor', '.aspx', '.ashx', '.asmx', '.asp'],
  Elixir: ['.ex', '.exs', '.eex', '.heex'],
  Erlang: ['.erl'],
  Gleam: ['.gleam'],
  Perl: ['.pl', '.pm', '.cgi', '.psgi'],
  ColdFusion: ['.cfm', '.cfc'],
  Lua: ['.lua'],
  Swift: ['.swift'],
  Dart: ['.dart'],
  Crystal: ['.cr'],
  Haskell: ['.hs'],
  Julia: ['.jl'],
  Nim: ['.nim'],
  Zig: ['.zig'],
  OCaml: ['.ml'],
  C: ['.c'],
  'C++': ['.cc', '.cpp', '.cxx'],
};

/** Files with which a manifest is that of an application for sure, and not of a tool beside a site. */
const applicationFiles: Record<string, string[]> = {
  PHP: ['artisan', 'index.php', 'public/index.php', 'web/index.php', 'bin/console'],
  Ruby: ['config.ru', 'bin/rails', 'config/application.rb'],
  Java: ['src/main/java', 'src/main/kotlin', 'src/main/webapp'],
  Scala: ['src/main/scala', 'app/controllers', 'conf/application.conf'],
  Clojure: ['src/clj', 'project.clj'],
  Elixir: ['mix.exs'],
  '.NET': ['Program.cs', 'Startup.cs', 'Program.fs'],
  Rust: ['src/main.rs'],
};
const JVM = /\b(?:java|mvnw?|gradlew?|sbt|lein|clojure|scala|kotlin)\b|(?:^|[\s/])(?:target|build\/libs)\//;
/** Commands that need the language to be built. */
export const CALLS = {
  PHP: /\bphp\d?\b|\bheroku-php-|\bvendor\/bin\/|\bcomposer\b|\bfrankenphp\b/,
  Ruby: /\b(?:bundle|ruby|rails|rake|rackup|puma|unicorn|thin|passenger|falcon)\b/,
  ...{ Java: JVM, Scala: JVM, Clojure: JVM },
  Elixir: /\b(?:mix|elixir|iex)\b|_build\//,
  '.NET': /\bdotnet\b|\bbin\/(?:publish|Release)\//i,
  Rust: /\bcargo\b|\btarget\/release\//,
  Deno: /\bdeno\b/,
  Swift: /\bswift\b|\.build\//,
  Dart: /\bdart\b/,
  Crystal: /\b(?:crystal|shards)\b/,
  Haskell: /\b(?:stack|cabal)\b/,
  Julia: /\bjulia\b/,
  Perl: /\b(?:perl|plackup|starman|hypnotoad)\b/,
} satisfies Record<string, RegExp>;
/** What a language has built elsewhere and the source brings along. */
const finished = /\.(?:jar|war|phar|dll)$/;

/** Their manifests may be those of tools beside a program. */
const fetched: ReadonlySet<string> = new Set(['Python', 'Go', 'TypeScript', 'Node.js']);

const byManifest = inverted(manifestNames);
const byManifestEnding = inverted(manifestEndings);
const bySourceEnding = inverted(sourceEndings);
/** Configuration of tools that build with the packages of a package.json. */
const bundler = /^(?:vite|webpack|rollup|astro|next|nuxt|svelte|remix|gatsby|vue|eleventy)[.-]config\.[cm]?[jt]s$/;
const nodeProgram = /^(?:server|app|index|main)\.[cm]?js$/;
const typescript = /^(?:server|app|index|main|mod)\.[mc]?ts$/;
const skipped = /^(?:\..*|node_modules|bower_components|vendor)$/;
const DEPTH_MAX = 4;
const ENTRIES_MAX = 2000;

/**
 * A manifest or source file of a program in one of the directories, manifests first.
 * @param known languages that are part of the plan
 */
export async function findUnbuiltSource(
  files: SourceFiles,
  directories: string[],
  known: string[],
): Promise<UnbuiltSource | null> {
  const all: UnbuiltSource[] = [];
  for (const directory of directories) {
    for (const name of await files.names(directory)) {
      const file = path.posix.join(directory, name);
      const language = manifestLanguage(name) ?? (await sourceLanguage(files, file));
      if (language !== null && !known.includes(language) && (await files.has(file))) all.push({ file, language });
    }
  }
  return all.find(({ file }) => manifestLanguage(path.posix.basename(file)) !== null) ?? all[0] ?? null;
}

/** An application of another language, by its manifest and a file of it; null for what may be a tool of a site. */
export async function findUnbuiltApplication(files: SourceFiles, known: string[]): Promise<UnbuiltSource | null> {
  for (const found of await findManifests(files, known))
    for (const name of applicationFiles[found.language] ?? [])
      if ((await files.has(name)) || (await files.isDirectory(name))) return found;
  return null;
}

/**
 * The manifest of another language whose programs the commands of a Procfile start; null where they can run without a
 * build.
 */
export async function findUnbuiltCommand(
  files: SourceFiles,
  commands: string[],
  known: string[],
): Promise<UnbuiltSource | null> {
  if (await startsFinished(files, commands)) return null;
  for (const found of await findManifests(files, known)) {
    if (found.language === 'PHP' && (await files.has('vendor/autoload.php'))) continue;
    if (commands.some((command) => (CALLS as Record<string, RegExp>)[found.language]?.test(command))) return found;
    // Nothing that is built here could leave a program in the folders of the source.
    if (known.length === 0 && (await startsMissingFile(files, commands))) return found;
  }
  return null;
}

async function startsMissingFile(files: SourceFiles, commands: string[]): Promise<boolean> {
  for (const command of commands)
    for (const part of command.split(/[;&|]+/)) {
      const program = part.trim().split(/\s+/)[0] ?? '';
      if (/^[\w.][\w./-]*\/[\w.-]+$/.test(program) && !(await files.has(program))) return true;
    }
  return false;
}

/** Of languages that nothing here builds, or that were not recognised as an application. */
async function findManifests(files: SourceFiles, known: string[]): Promise<UnbuiltSource[]> {
  const found: UnbuiltSource[] = [];
  for (const file of await files.names('.')) {
    const language = manifestLanguage(file);
    const isOther = language !== null && !fetched.has(language) && !known.includes(language);
    if (isOther && (await files.has(file))) found.push({ file, language });
  }
  return found;
}

/**
 * The first source file of a program in subdirectories: libraries of a site may contain some.
 * @param wanted languages; default: all
 */
export function findNestedSource(
  files: SourceFiles,
  directory: string,
  wanted?: string[],
): Promise<UnbuiltSource | null> {
  return findNested(files, directory, (file) => {
    const language = bySourceEnding.get(path.extname(file).toLowerCase());
    return Promise.resolve(language !== undefined && (wanted?.includes(language) ?? true) ? language : null);
  });
}

/** The first server in JavaScript in subdirectories: a site of the root directory would publish its source. */
export function findNestedServer(files: SourceFiles): Promise<UnbuiltSource | null> {
  return findNested(files, '.', async (file) =>
    nodeProgram.test(path.posix.basename(file)) && (await isNodeServer(files, file)) ? 'Node.js' : null,
  );
}

async function findNested(
  files: SourceFiles,
  directory: string,
  languageOf: (file: string) => Promise<string | null>,
): Promise<UnbuiltSource | null> {
  const queue = [{ directory, depth: 0 }];
  let entries = 0;
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    for (const name of await files.names(next.directory)) {
      if (skipped.test(name)) continue;
      if ((entries += 1) > ENTRIES_MAX) return null;
      const file = path.posix.join(next.directory, name);
      const language = next.depth > 0 ? await languageOf(file) : null;
      if (language !== null && (await files.has(file))) return { file, language };
      if (next.depth < DEPTH_MAX && (await files.isDirectory(file)))
        queue.push({ directory: file, depth: next.depth + 1 });
    }
  }
  return null;
}

/** The build error, with advice specific to the language. */
export function unbuiltSourceError(found: UnbuiltSource, hasSite: boolean, canBuildImages: boolean): BuildError {
  const { language } = found;
  const way = ways[language]?.(shownFile(found));
  const what =
    way === undefined
      ? `this platform does not build ${language} by itself. Add a Dockerfile that builds and starts the program` +
        `${canBuildImages ? '' : '; the operator has to install buildah and bubblewrap for it'}.`
      : `no start command was found. ${way}`;
  const site =
    ' To publish a site only, keep its files in a directory of their own and set build.root_directory to it.';
  return new BuildError(`The source has ${shownFile(found)} (${language}), and ${what}${hasSite ? site : ''}`);
}

/** For a Procfile that starts a program which nothing builds. */
export function unbuiltCommandError(found: UnbuiltSource, hasDockerfile: boolean, canBuildImages: boolean): BuildError {
  const { language } = found;
  const way = hasDockerfile
    ? 'Set build.builder to `dockerfile`, since a Procfile comes before a Dockerfile.'
    : `Add a Dockerfile that builds and starts the program, and set build.builder to \`dockerfile\`.`;
  const host = canBuildImages ? '' : ' The operator has to install buildah and bubblewrap for it.';
  const why = ways[language] === undefined ? `this platform does not build ${language} by itself` : 'no program in it';
  return new BuildError(
    `The source has ${shownFile(found)} (${language}), and ${why}, so what the Procfile starts would not be there. ` +
      `${way}${host}`,
  );
}

/** Whether a command starts a file that was built elsewhere and is part of the source. */
export async function startsFinished(files: SourceFiles, commands: string[]): Promise<boolean> {
  for (const word of wordsOfCommands(commands)) if (finished.test(word) && (await files.has(word))) return true;
  return false;
}

function wordsOfCommands(commands: string[]): string[] {
  return commands.flatMap((command) => command.split(/[\s;&|()"'=]+/)).filter(Boolean);
}

/** Sanitises an untrusted file name for messages. */
export function shownFile({ file }: UnbuiltSource): string {
  return /^[\w./ @+-]{1,80}$/.test(file) ? file : JSON.stringify(file.slice(0, 80)).replace(/[^ -~]/g, '?');
}

const ways: Record<string, (file: string) => string> = {
  Python: (file) => {
    const command = file.endsWith('.py') ? `python3 ${file}` : 'gunicorn app:app';
    return `Add a Procfile with a line like \`web: ${command}\` and a requirements.txt, or a Dockerfile.`;
  },
  Java: () => 'Add its sources in src/main and a pom.xml or build.gradle that builds them, or a Dockerfile.',
  PHP: () => 'Add an index.php in the root directory or in public/, a Procfile, or a Dockerfile.',
  Ruby: () => 'Add a Gemfile and a config.ru, a Procfile, or a Dockerfile.',
  Rust: () => 'Add a Cargo.toml with a program (src/main.rs), or a Dockerfile.',
  Go: () => 'Add a go.mod (`go mod init`) beside it, or a Dockerfile.',
  TypeScript: () => 'Add a package.json with a start script, or a Dockerfile.',
  'Node.js': () => 'Add a package.json with a build or start script, or a Dockerfile.',
};

function manifestLanguage(name: string): string | null {
  return byManifest.get(name) ?? byManifestEnding.get(path.extname(name).toLowerCase()) ?? null;
}

async function sourceLanguage(files: SourceFiles, file: string): Promise<string | null> {
  const name = path.posix.basename(file);
  if (bundler.test(name)) return 'Node.js';
  if (typescript.test(name)) return (await isNodeServer(files, file)) ? 'TypeScript' : null;
  return name.endsWith('_test.go') ? null : (bySourceEnding.get(path.extname(name).toLowerCase()) ?? null);
}

function inverted(table: Record<string, string[]>): Map<string, string> {
  return new Map(Object.entries(table).flatMap(([language, names]) => names.map((name) => [name, language] as const)));
}
