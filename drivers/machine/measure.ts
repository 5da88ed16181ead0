// How much room directories take, by `du` at the lowest priority: a walk through millions of files would keep this
// process, and the disk, from its work.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { commandEnvironment } from '../../core/process/command';

export interface Measured {
  bytes: number;
  /** Of the directories in it. */
  parts: { name: string; bytes: number }[];
  /** A sentence on why it could not be measured whole. */
  problem: string | null;
}

const OUTPUT_BYTES_MAX = 64 << 20;
const NOTHING: Measured = { bytes: 0, parts: [], problem: null };
const PRIORITIES: readonly string[][] = [
  ['nice', '-n', '19', 'ionice', '-c', '3'],
  ['nice', '-n', '19'],
];

/** Blocks of the files that are in the file system of the directory. Never rejects, but for the end of the signal. */
export async function measureUsedRoom(directory: string, withinMs: number, signal: AbortSignal): Promise<Measured> {
  if (!existsSync(directory)) return NOTHING;
  for (const priority of PRIORITIES) {
    const found = await du([...priority, 'du', '-kx', '-d', '1', directory], withinMs, signal);
    if (found) return parsed(directory, found);
  }
  return { ...NOTHING, problem: 'The program `du` of the machine could not measure it.' };
}

interface Printed {
  text: string;
  isCutOff: boolean;
}

/** Null: a program is missing. Files that go meanwhile make it end with 1. */
function du([program = '', ...words]: string[], withinMs: number, signal: AbortSignal): Promise<Printed | null> {
  return new Promise((resolve, reject) => {
    const options = {
      ...{ env: commandEnvironment, timeout: withinMs, killSignal: 'SIGKILL' as const },
      ...{ maxBuffer: OUTPUT_BYTES_MAX, signal },
    };
    execFile(program, words, options, (error, text) => {
      if (signal.aborted) reject(error ?? new Error('aborted'));
      else if (text.endsWith('\n') || error === null) resolve({ text, isCutOff: error?.killed === true });
      else resolve(error.killed === true ? { text, isCutOff: true } : null);
    });
  });
}

function parsed(directory: string, { text, isCutOff }: Printed): Measured {
  const lines = text.split('\n').flatMap((line) => {
    const [, kibibytes, place] = /^(\d+)\s+(.+)$/.exec(line) ?? [];
    return place === undefined ? [] : [{ place, bytes: Number(kibibytes) * 1_024 }];
  });
  const parts = lines
    .filter(({ place }) => place !== directory)
    .map(({ place, bytes }) => ({ name: path.basename(place), bytes }));
  const whole = lines.find(({ place }) => place === directory)?.bytes;
  const bytes = whole ?? parts.reduce((sum, part) => sum + part.bytes, 0);
  return { bytes, parts, problem: isCutOff ? 'Measuring took too long: the real size is larger.' : null };
}
