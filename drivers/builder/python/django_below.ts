// A manage.py in a folder of the root directory: packages are stated above it, and its programs run in it.
import path from 'node:path';
import type { SourceFiles } from '../source_files';

export interface ProgramPlace {
  /** Relative to the root directory; `.` without such a folder. */
  directory: string;
  files: SourceFiles;
}

const OWN_STATEMENTS = ['requirements.txt', 'pyproject.toml', 'Pipfile', 'setup.py', 'Procfile'];
/** Django, or what brings it along. */
const OF_DJANGO = /^(?:django|wagtail$)/;
const OTHER_STARTS = ['manage.py', 'app.py', 'main.py', 'asgi.py', 'wsgi.py'];

/**
 * The only folder with a manage.py. One that states its packages itself is a source of its own, and one whose Django is
 * not among the packages could not start.
 * @param packages empty where none are known
 */
export async function findBelow(files: SourceFiles, packages: ReadonlySet<string>): Promise<ProgramPlace> {
  const here = { directory: '.', files };
  if (packages.size > 0 && ![...packages].some((name) => OF_DJANGO.test(name))) return here;
  for (const name of OTHER_STARTS) if (await files.has(name)) return here;
  const found: string[] = [];
  for (const name of await files.names('.')) {
    if (!/^\w[\w-]*$/.test(name) || !(await files.has(`${name}/manage.py`))) continue;
    const own = await Promise.all(OWN_STATEMENTS.map((file) => files.has(`${name}/${file}`)));
    if (!own.includes(true)) found.push(name);
  }
  const [directory] = found;
  return found.length === 1 && directory !== undefined ? { directory, files: within(files, directory) } : here;
}

/** The command as a shell runs it in a folder of the root directory. */
export function inDirectory(directory: string, command: string): string {
  return directory === '.' ? command : `cd ${directory} && exec ${command}`;
}

function within(files: SourceFiles, directory: string): SourceFiles {
  const at = (name: string): string => path.posix.join(directory, name);
  return {
    read: (name, bytesMax) => files.read(at(name), bytesMax),
    readHead: (name) => files.readHead(at(name)),
    has: (name) => files.has(at(name)),
    isDirectory: (name) => files.isDirectory(at(name)),
    names: (name) => files.names(at(name)),
    above: () => [{ files, up: '..', below: directory }, ...files.above()],
  };
}
