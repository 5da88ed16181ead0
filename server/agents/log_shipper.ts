// Ships the logs that kinds declare (jobs/declarations.ts, LogSource). Lines and position are written in one
// transaction, as in shipper.ts: the files are the buffer.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../../core/log/log';
import { lossMessage, type LogBudget } from '../../core/log/log_budget';
import type { ControlDatabase } from '../../db/control_database';
import type { LogSource } from '../../jobs/declarations';
import { logPositions, moveLogPositions } from '../../models/applications/log_position';

interface LogShipperParts {
  database: ControlDatabase;
  /** All logs that there are now. */
  sources(): Promise<LogSource[]>;
  log: Logger;
  budget: LogBudget;
}

const POLL_MS = 2_000;
const ABREAST = 16;

/** Starts copying in the background. One process for each host. */
export function startLogShipper(parts: LogShipperParts): { stop(): Promise<void> } {
  const stopping = new AbortController();
  const ended = run(parts, stopping.signal);
  return {
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

async function run(parts: LogShipperParts, signal: AbortSignal): Promise<void> {
  let away = false;
  while (!signal.aborted) {
    try {
      await copyAll(parts, signal);
      away = false;
    } catch (error) {
      if (!away) parts.log.warn({ err: error }, 'logs of servers could not be copied; they stay in their files');
      away = true;
    }
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
}

async function copyAll(parts: LogShipperParts, signal: AbortSignal): Promise<void> {
  const sources = await parts.sources();
  if (!sources.length) return;
  const keys = sources.map(({ key }) => key);
  const positions = await logPositions(parts.database, keys);
  for (let start = 0; start < sources.length && !signal.aborted; start += ABREAST) {
    const some = sources.slice(start, start + ABREAST);
    await Promise.all(some.map((source) => copy(parts, source, positions.get(source.key) ?? null, signal)));
  }
}

async function copy(
  { database, log, budget }: LogShipperParts,
  { key, read, append }: LogSource,
  from: string | null,
  signal: AbortSignal,
): Promise<void> {
  for (let position = from; !signal.aborted;) {
    const chunk = await read(position).catch((error: unknown) => void log.debug({ err: error, unit: key }, 'no log'));
    if (!chunk || chunk.position === (position ?? '')) return;
    const { lines, position: to, more } = chunk;
    const before = position;
    const texts = lines.map(({ text }) => text).filter((text) => budget.take(key, Buffer.byteLength(text)));
    const lost = budget.lost(key);
    if (lost) texts.push(`WARNING: ${lossMessage(lost)}`);
    await database.transaction(async (sql) => {
      await moveLogPositions(sql, [{ unit_id: key, from: before, to }]);
      await append(sql, texts);
    });
    if (!more) return;
    position = to;
  }
}
