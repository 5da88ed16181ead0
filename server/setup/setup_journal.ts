// How far a setup is that the dashboard has started, in a file that outlives the restart of the service.
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { replaceFile } from '../../core/files';

export interface SetupRun {
  /** SHA-256 of the token of who started it. */
  token_hash: string;
  /** That the dashboard gets. */
  address: string;
  lines: string[];
  outcome: 'running' | 'done' | 'failed';
  reason: string | null;
  started_at: string;
}

interface Place {
  prefix: string;
}

const LINES_MAX = 500;
const fileOf = ({ prefix }: Place): string => path.join(prefix, '.setup', 'run.json');

/** The last one; null: there was none. */
export function readSetupRun(place: Place): SetupRun | null {
  try {
    return JSON.parse(readFileSync(fileOf(place), 'utf8')) as SetupRun;
  } catch {
    return null;
  }
}

export async function writeSetupRun(place: Place, run: SetupRun): Promise<void> {
  await mkdir(path.dirname(fileOf(place)), { recursive: true, mode: 0o700 });
  await replaceFile(fileOf(place), JSON.stringify(run));
}

export interface SetupJournal {
  append(line: string): void;
  end(outcome: 'done' | 'failed', reason: string | null): Promise<void>;
}

/** Goes on with what the service has written. A disk without room for it keeps no setup back. */
export function openSetupJournal(place: Place): SetupJournal {
  const run = readSetupRun(place);
  let last: Promise<unknown> = Promise.resolve();
  const write = (): Promise<unknown> => {
    const text = run && { ...run };
    return (last = last.then(() => text && writeSetupRun(place, text)).catch(() => undefined));
  };
  return {
    append(line) {
      if (!run) return;
      run.lines = [...run.lines, line].slice(-LINES_MAX);
      void write();
    },
    async end(outcome, reason) {
      if (run) Object.assign(run, { outcome, reason });
      await write();
    },
  };
}
