// A static site, served by a small server that is added to the build output and deployed with it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { LanguagePlan, Step } from '../language_plan';
import type { SourceFiles } from '../source_files';

/** Usual output directories of builds. */
export const OUTPUT_DIRECTORIES = ['dist', 'build', 'out', 'public', '_site'];

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
    processes: { web: command([directory]) },
    env: {},
    programs: [],
  };
}

/** A site in build output: the first of the directories with an index.html. The build fails where none has one. */
export function siteOfBuild(directories: string[]): Pick<LanguagePlan, 'site' | 'processes'> {
  const tests = directories.map((directory) => `[ -f ${directory}/index.html ]`).join(' || ');
  const none =
    'The build left no index.html in ' +
    directories.map((directory) => `${directory}/`).join(', ') +
    '. Let it write the site to one of them; the root directory holds the sources, which are not published. ' +
    'To run a server instead, add a start script or a Procfile.';
  const check: Step = { name: 'Static site', command: `${tests} || { echo "${none}" >&2; exit 1; }` };
  return { site: [check, serverStep(directories)], processes: { web: command(directories) } };
}

/** For a custom build command with unknown output: the server reports a missing site at its start. */
export function siteOfCustomBuild(directories: string[]): Pick<LanguagePlan, 'site' | 'processes'> {
  return { site: [serverStep(directories)], processes: { web: command(directories) } };
}

function command(directories: string[]): string {
  return `node ${serverDirectory}/static_server.cjs ${directories.join(' ')}`;
}

function serverStep(directories: string[]): Step {
  const compress = `node ${serverDirectory}/static_compress.cjs`;
  return {
    name: 'Web server for files',
    command: [
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
