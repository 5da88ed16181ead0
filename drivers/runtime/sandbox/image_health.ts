// HEALTHCHECK of an image. The checks run beside the program, in the sandbox of the unit and in the root of the image,
// as its user and with its variables. The control plane only reads what they found, so they need no program of root,
// and go on while it is away. `health` of the run directory has a line for each check.
import { open, truncate } from 'node:fs/promises';
import path from 'node:path';
import type { ImageHealthCheck } from '../../../core/protocols/image_settings';
import type { HealthReport } from '../../runtime';

/** File descriptor on which results are written. */
export const HEALTH_FD = 7;
export const HEALTH_FILE = 'health';

const OUTPUT_BYTES_MAX = 500;
const FILE_BYTES_MAX = 256 * 1024;
const TAIL_BYTES = 4096;

/**
 * Shell commands that begin the checks in the background.
 * @param command enters the image, and reads `options` from file descriptor 6
 * @param filter redirection by which it finds the filter of system calls
 */
export function healthScript(
  check: ImageHealthCheck,
  { command, options, filter }: { command: string[]; options: string[]; filter: string },
  quoted: (text: string) => string,
): string[] {
  const { interval_seconds: interval, start_period_seconds: startPeriod } = check;
  return [
    '{',
    // A stop of the unit goes to the program; the checks end with the sandbox.
    "  trap '' TERM INT HUP QUIT",
    "  misses=0 healthy= began=$(date +%s) newline='",
    "'",
    '  while :; do',
    // `printf` is of the shell: options hold variables, which must not be seen among arguments.
    `    found=$({ printf '%s\\0' ${options.map(quoted).join(' ')} |`,
    `      timeout -s KILL ${check.timeout_seconds} ${command.map(quoted).join(' ')} 6<&0 </dev/null${filter}`,
    `      printf '\\n%s' "$?"; } 2>&1 ${HEALTH_FD}>&- | tail -c ${OUTPUT_BYTES_MAX} | tr '\\000\\r' '  ')`,
    '    code=${found##*"$newline"} age=$(($(date +%s) - began))',
    `    if [ "$code" = 0 ]; then misses=0 healthy=yes pause=${interval}`,
    `    elif [ -n "$healthy" ] || [ "$age" -ge ${Math.max(startPeriod, interval)} ]; then`,
    `      misses=$((misses + 1)) pause=${interval}`,
    `    else pause=${check.start_interval_seconds}; fi`,
    `    text=; [ "$code" = 0 ] || text=$(printf '%s' "\${found%"$newline"*}" | tr '\\n' ' ')`,
    `    printf '%s %s %s\\n' "$code" "$misses" "$text" >&${HEALTH_FD}`,
    '    sleep "$pause"',
    '  done',
    '} 6<&- >/dev/null 2>&1 &',
  ];
}

/** The result of the last check; null if none has finished yet. */
export async function readHealth(runDirectory: string): Promise<HealthReport | null> {
  const file = path.join(runDirectory, HEALTH_FILE);
  const handle = await open(file, 'r').catch(() => null);
  if (handle === null) return null;
  try {
    const { size, mtimeMs } = await handle.stat();
    const start = Math.max(0, size - TAIL_BYTES);
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(size - start), 0, size - start, start);
    // Checks append to the file: a result written meanwhile is lost, but the next check writes another one.
    if (size > FILE_BYTES_MAX) await truncate(file, 0);
    return parseReport(buffer.toString('utf8', 0, bytesRead), Date.now() - mtimeMs);
  } finally {
    await handle.close();
  }
}

function parseReport(text: string, ageMs: number): HealthReport | null {
  const last = text.slice(0, text.lastIndexOf('\n') + 1).trimEnd();
  const [, code, misses, output = ''] = /(?:^|\n)(\d{1,3}) (\d{1,9}) ?([^\n]*)$/.exec(last) ?? [];
  if (code === undefined) return null;
  return { code: Number(code), misses: Number(misses), output: output.trim(), age_ms: ageMs };
}
