import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { openTestServer } from '../databases/database';

/** This process holds the server, so that it ends with jest, however jest ends. No test may reach a real database. */
export default async function globalSetup(): Promise<void> {
  delete process.env.DATABASE_URL;
  process.env.PATH = withoutShims(process.env.PATH ?? '');
  await openTestServer();
}

/** A shim is a shell script that looks for the version before each start: a twentieth of all that a run computes. */
function withoutShims(search: string): string {
  return search
    .split(path.delimiter)
    .map((directory) => (directory.endsWith('/.pyenv/shims') ? directoryOfPython(directory) : directory))
    .join(path.delimiter);
}

/** Of the version that is chosen; where none is, that of the shims. */
function directoryOfPython(shims: string): string {
  try {
    const program = execFileSync(path.join(shims, 'python3'), ['-c', 'import sys; print(sys.executable)'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return path.dirname(program.trim());
  } catch {
    return shims;
  }
}
