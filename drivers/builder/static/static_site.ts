// A site of files, served by a small server that becomes part of what is built: it lives as long as the files do.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { LanguagePlan, Step } from '../language_plan';
import type { SourceFiles } from '../source_files';

/** Where builds leave sites. */
export const OUTPUT_DIRECTORIES = ['dist', 'build', 'out', 'public', '_site'];

// `.cjs`: the package.json around it may say that its files are modules.
const serverDirectory = '.platform';
const serverFiles = ['static_server', 'static_files', 'static_redirects', 'static_variants', 'static_compress'];

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
    site: [serverStep([directory])],
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
  return { site: [check, serverStep(directories)], processes: { web: command(directories) } };
}

/** For a build command of the user, whose result nobody knows: the server says at its start if there is no site. */
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
      // What a source brings under these names is not what its build has left.
      `mkdir -p ${serverDirectory} && rm -rf ${serverDirectory}/static[_.]* || exit 1`,
      ...serverFiles.map(writeCommand),
      `${compress} check ${directories.join(' ')} || exit 1`,
      // A build that succeeded does not fail because its site is larger than it must be.
      `${compress} compress ${directories.join(' ')} || echo 'The files were not compressed.'`,
    ].join('\n'),
  };
}

function writeCommand(name: string): string {
  const text = readFileSync(path.join(__dirname, `${name}.js`), 'utf8').trimEnd();
  return `cat > ${serverDirectory}/${name}.cjs <<'END_OF_SERVER' || exit 1\n${text}\nEND_OF_SERVER`;
}
