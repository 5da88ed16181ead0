// Counters of a Varnish on this machine, read from its shared memory by varnishstat.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);
const WITHIN_MS = 5_000;
const OUTPUT_BYTES_MAX = 4_000_000;

/** By name, such as `MAIN.cache_hit`. @param directory of -n. @throws Error without varnishstat or a running Varnish */
export async function readVarnishCounters(directory: string): Promise<Map<string, number>> {
  const { stdout } = await run('varnishstat', ['-1', '-j', '-n', directory, '-t', '1'], {
    timeout: WITHIN_MS,
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  const { counters = {} } = JSON.parse(stdout) as { counters?: Record<string, { value: number }> };
  return new Map(Object.entries(counters).map(([name, { value }]) => [name, value]));
}
