// Parts of the command line by themselves: what no process can be made to show, such as paths of another system.
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { ROOT } from '../runner/repository';

const CLI = path.join(ROOT, 'clients/cli');

/** Bundles a module of `clients/cli/src`, or of another client, into a CommonJS file. */
export function bundlePart(source: string, output: string, client = CLI): void {
  const options = {
    entryPoints: [path.join(client, 'src', source)],
    outfile: output,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'error',
  };
  // In a process of its own: esbuild does not take the typed arrays of a test's realm.
  execFileSync(process.execPath, ['-e', `require('esbuild').buildSync(${JSON.stringify(options)})`], { cwd: CLI });
}
