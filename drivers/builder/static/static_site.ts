// A static site, served by a small server that is added to the build output and deployed with it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { shellWord, type LanguagePlan, type Step } from '../language_plan';
import type { SourceFiles } from '../source_files';

/** Usual output directories of builds. */
const OUTPUT_DIRECTORIES = ['dist', 'build', 'out', 'public', '_site'];
/** Those of single frameworks, as the presets of other platforms name them; sources have some of these names too. */
const FURTHER_DIRECTORIES = [
  ...['www', '.output/public', 'build/client', 'dist/client', 'dist/public', 'dist/static', 'storybook-static'],
  ...['docs/.vitepress/dist', '.vitepress/dist', 'docs/.vuepress/dist', 'src/.vuepress/dist', '.vuepress/dist'],
  ...['site', 'output', 'docs/dist', 'docs/build', 'web/dist', 'build/default', '__sapper__/export', 'book'],
];

type SitePlan = Pick<LanguagePlan, 'site' | 'processes'>;

// `.cjs`: a package.json above may declare the files ES modules.
const serverDirectory = '.platform';
const serverFiles = ['static_server', 'static_files', 'static_redirects', 'static_variants', 'static_compress'];

/** The directory of a site without a build; null where there is none. */
export async function findSiteDirectory(files: SourceFiles): Promise<string | null> {
  if (await files.has('index.html')) return '.';
  return (await files.has('public/index.html')) ? 'public' : null;
}

export function planSite(directory: string): LanguagePlan {
  return {
    kind: 'static',
    summary: [directory === '.' ? 'Static site' : `Static site of ${directory}/`],
    tools: [],
    steps: [],
    site: [serverStep([directory])],
    prune: null,
    processes: { web: webOf([directory]) },
    env: {},
    programs: [],
  };
}

/**
 * Where a build may leave a site. What has an index.html before the build comes last: it may be the source of a page.
 * @param known of the frameworks of the source
 */
export async function findOutputDirectories(files: SourceFiles, known: readonly string[] = []): Promise<string[]> {
  const usual = [...known, ...OUTPUT_DIRECTORIES];
  const made = await withoutSources(files, usual);
  return [...new Set([...made, ...usual])];
}

async function withoutSources(files: SourceFiles, directories: readonly string[]): Promise<string[]> {
  const areSources = await Promise.all(directories.map((directory) => files.has(`${directory}/index.html`)));
  return directories.filter((_, i) => !areSources[i]);
}

/**
 * A site in build output: the first of the directories with an index.html. The build fails where none has one.
 * @param hint a sentence that may explain it
 */
export async function siteOfBuild(files: SourceFiles, directories: string[], hint: string | null): Promise<SitePlan> {
  const none =
    'The build left no index.html in ' +
    directories.map((directory) => `${directory}/`).join(', ') +
    ' or another usual folder. Set build.output_directory to the folder that it writes to; the root directory holds ' +
    'the sources, which are not published. To run a server instead, add a start script or a Procfile.';
  const others =
    'find . -name node_modules -prune -o -name index.html -print | ' +
    String.raw`sed -n 's|^\./\(.*\)/[^/]*$|\1|p' | sort | head -n 3 | paste -sd ' ' -`;
  const command = [
    ...(await findInFurther(files, directories)),
    `others=$(${others})`,
    '[ -z "$others" ] || others=" These folders have an index.html: $others."',
    // In one line: the last one is the reason of the deployment.
    `printf '%s%s%s\\n' ${shellWord(none)} "$others" ${shellWord(hint === null ? '' : ` ${hint}`)} >&2`,
    'exit 1',
  ].join('\n');
  return { site: [{ name: 'Static site', command }, serverStep(directories)], processes: { web: webOf(directories) } };
}

/** Ends with 0 where there is a site. One in a further directory gets a link with a usual name, for the server. */
async function findInFurther(files: SourceFiles, directories: string[]): Promise<string[]> {
  const further = await withoutSources(files, FURTHER_DIRECTORIES);
  const names = directories.filter((directory) => !directory.includes('/'));
  return [
    `for one in ${directories.join(' ')}; do [ ! -f "$one/index.html" ] || exit 0; done`,
    `for one in ${further.join(' ')}; do`,
    '[ -f "$one/index.html" ] || continue',
    `for name in ${names.join(' ')}; do`,
    `[ -e "$name" ] || [ -L "$name" ] || { ln -s "$one" "$name" && echo "The site is in $one/."; exit; }`,
    'done; done',
  ];
}

/** For a custom build command with unknown output: the server reports a missing site at its start. */
export async function siteOfCustomBuild(files: SourceFiles, directories: string[]): Promise<SitePlan> {
  const further = ['(', ...(await findInFurther(files, directories)), ')'];
  return { site: [serverStep(directories, further)], processes: { web: webOf(directories) } };
}

/** The site in the directory that the owner has set. The build fails where it is not there, or not in the source. */
export function siteOfSetting(directory: string, isBuilt: boolean): SitePlan {
  const what = `the folder \`${directory}\` that build.output_directory names`;
  const fail = (sentence: string): string => `{ printf '%s\\n' ${shellWord(sentence)} >&2; exit 1; }`;
  const place = isBuilt ? 'The build did not make' : 'The source does not have';
  const within = `case $real in "$(pwd -P)"/?*) ;; *) ${fail(`A link leads ${what} out of the source.`)} ;; esac`;
  const command = [
    `[ -d ${shellWord(`./${directory}`)} ] || ${fail(`${place} ${what}.`)}`,
    ...(directory === '.' ? [] : [`real=$(cd -P ${shellWord(`./${directory}`)} && pwd -P) || exit 1`, within]),
    `[ -f ${shellWord(`./${directory}/index.html`)} ] || ${fail(`There is no index.html in ${what}.`)}`,
  ].join('\n');
  const words = [shellWord(directory)];
  return { site: [{ name: 'Static site', command }, serverStep(words)], processes: { web: webOf(words) } };
}

function webOf(directories: string[]): string {
  return `node ${serverDirectory}/static_server.cjs ${directories.join(' ')}`;
}

function serverStep(directories: string[], before: string[] = []): Step {
  const compress = `node ${serverDirectory}/static_compress.cjs`;
  return {
    name: 'Web server for files',
    command: [
      ...before,
      // Files of the source with these names must not replace the platform's.
      `mkdir -p ${serverDirectory} && rm -rf ${serverDirectory}/static[_.]* || exit 1`,
      ...serverFiles.map(writeCommand),
      `${compress} check ${directories.join(' ')} || exit 1`,
      // Failure to compress does not fail a successful build.
      `${compress} compress ${directories.join(' ')} || echo 'The files were not compressed.'`,
    ].join('\n'),
  };
}

function writeCommand(name: string): string {
  const text = readFileSync(path.join(__dirname, `${name}.cjs`), 'utf8').trimEnd();
  return `cat > ${serverDirectory}/${name}.cjs <<'END_OF_SERVER' || exit 1\n${text}\nEND_OF_SERVER`;
}
