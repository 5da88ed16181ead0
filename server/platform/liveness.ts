// For a liveness probe of a process that serves no port of its own: the age of a file in its data directory. A process
// whose event loop hangs touches nothing either.
import { rm, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Config } from '../../core/config';
import { repeatWork } from '../../core/process/background';

const EVERY_MS = 10_000;
/** Statements and connections are given up sooner: a database that is away stops no loop. */
const STUCK_MS = 60_000;

/** Touches `alive` every ten seconds, unless the loops are silent for a minute. Stops with the returned function. */
export function startLiveness({ dataDir }: Pick<Config, 'dataDir'>, silentMs: () => number): () => Promise<void> {
  const file = fileIn(dataDir);
  const work = repeatWork({ name: 'liveness', everyMs: EVERY_MS }, async () => {
    if (silentMs() > STUCK_MS) throw new Error('a loop no longer turns');
    const now = new Date();
    await utimes(file, now, now).catch(() => writeFile(file, ''));
  });
  work.runNow();
  return () => work.stop();
}

/** For a start that takes a while: the file of the process before would look like one that hangs. */
export async function forgetLiveness({ dataDir }: Pick<Config, 'dataDir'>): Promise<void> {
  await rm(fileIn(dataDir), { force: true });
}

const fileIn = (dataDir: string): string => path.join(dataDir, 'alive');
