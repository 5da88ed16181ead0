// What a Node.js source lacks to be started: a sentence that names what was recognised, and the line to add.
import { listNames } from '../message_text';
import { isTypeScript } from '../server_file';
import { frameworkOf } from './node_frameworks';
import type { Package } from './package_json';
import type { ManagerName } from './package_manager';

interface Recognised {
  /** Directories of the members, for the top of a workspace. */
  members: readonly string[];
  entry?: { file: string; isServer: boolean; isRunnable: boolean } | null;
  manager?: ManagerName;
}

/** The sentence; `members` or `entry` decide what it advises. */
export function missingStart(found: Package, { members, entry = null, manager }: Recognised): string {
  if (members.length > 0)
    return (
      `The source is the top of a workspace, which starts nothing by itself. Choose a member: ` +
      `set build.root_directory to one of ${listNames(members)}.`
    );
  const framework = frameworkOf(found);
  const what = `The source is a Node.js project${framework === null ? '' : ` with ${framework.title}`} (package.json)`;
  if (framework?.build !== undefined && found.scripts.build === undefined)
    return `${what} without a build script. Add the script \`"build": "${framework.build}"\` to package.json.`;
  if (entry === null)
    return `${what} without a start script. Add the script \`"start": "node <file>"\` to package.json.`;
  const start = `\`"start": "${manager === 'bun' ? 'bun' : 'node'} ${entry.file}"\``;
  if (!entry.isServer)
    return (
      `${what} without a start script, and ${entry.file} opens no port${portAdvice(framework?.title)}. ` +
      `Let it listen on the port in the variable PORT, and add the script ${start} to package.json.`
    );
  if (found.scripts.build === undefined && entry.isRunnable)
    return `${what} without a start script. Add the script ${start} to package.json.`;
  const compiled = entry.file.replace(/^src\//, 'dist/').replace(/\.([mc]?)ts$/, '.$1js');
  const ways = isTypeScript(entry.file)
    ? `\`"start": "node ${compiled}"\`, with what the build script leaves, or \`"start": "tsx ${entry.file}"\` with ` +
      'the package tsx among the dependencies,'
    : `${start}`;
  return `${what} without a start script: ${entry.file} opens a port. Add the script ${ways} to package.json.`;
}

function portAdvice(title: string | undefined): string {
  return title === 'Hono' ? ' (`serve` of the package @hono/node-server does)' : '';
}
