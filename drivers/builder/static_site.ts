// A site of files, served by a small server that becomes part of what is built: it lives as long as the files do.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { LanguagePlan, Step } from './language_plan';
import type { SourceFiles } from './source_files';

/** Where builds leave sites. */
export const OUTPUT_DIRECTORIES = ['dist', 'build', 'out', 'public', '_site'];

// `.cjs`: the package.json around it may say that its files are modules.
const serverFile = '.platform/static_server.cjs';

/** The directory of a site that is there without a build; null where there is none. */
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
    site: [serverStep()],
    prune: null,
    processes: { web: command([directory]) },
    env: {},
    programs: [],
  };
}

/** A site that is there after the build only: the first of the directories with an index.html. Fails where none has. */
export function siteOfBuild(directories: string[]): Pick<LanguagePlan, 'site' | 'processes'> {
  const tests = directories.map((directory) => `[ -f ${directory}/index.html ]`).join(' || ');
  const none =
    'The build left no index.html in ' +
    directories.map((directory) => (directory === '.' ? 'the root directory' : `${directory}/`)).join(', ') +
    '. To run a server instead, add a start script or a Procfile.';
  const check: Step = { name: 'Static site', command: `${tests} || { echo "${none}" >&2; exit 1; }` };
  return { site: [check, serverStep()], processes: { web: command(directories) } };
}

/** For a build command of the user, whose result nobody knows: the server says at its start if there is no site. */
export function siteOfCustomBuild(directories: string[]): Pick<LanguagePlan, 'site' | 'processes'> {
  return { site: [serverStep()], processes: { web: command(directories) } };
}

function command(directories: string[]): string {
  return `node ${serverFile} ${directories.join(' ')}`;
}

function serverStep(): Step {
  const server = readFileSync(path.join(__dirname, 'static_server.js'), 'utf8');
  return {
    name: 'Web server for files',
    command: `mkdir -p .platform && cat > ${serverFile} <<'END_OF_SERVER'\n${server.trimEnd()}\nEND_OF_SERVER`,
  };
}
