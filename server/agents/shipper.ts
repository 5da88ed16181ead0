// Copies what units print into the log. A unit prints into files, which outlive this process; its lines and the
// position in its files are written in one transaction, so each line is in the log once, whatever dies when. Nothing
// here is needed to go on: a database that is away is waited for, and the files are the buffer.
import type { Logger } from '../../core/log/log';
import { lossMessage, type LogBudget } from '../../core/log/log_budget';
import { levelOf } from '../../core/log/log_level';
import type { LogChunk, RuntimeDriver } from '../../drivers/runtime';
import type { ControlDatabase } from '../../db/control_database';
import { appendLogLines, type LogLineInput } from '../../models/applications/log_line';
import { originsOfUnits, type LogOrigin } from '../../models/applications/log_origin';
import { dropLogPositions, logPositions, moveLogPositions } from '../../models/applications/log_position';
import { unitOwners } from '../../jobs/all_jobs';
import { openWakeSignal, type WakeSignal } from '../../jobs/wake_signal';

export interface Shipper {
  /** A unit was started: looks for it at once. Without it the unit is found within seconds. */
  noticeUnit(unitId: string): void;
  /** Resolves when every line that the ended unit has written is in the log. @throws where the database is away */
  shipRemaining(unitId: string): Promise<void>;
  /** Stops after the present batch. The next process ships the rest. */
  stop(): Promise<void>;
}

interface ShipperParts {
  database: ControlDatabase;
  runtime: Pick<RuntimeDriver, 'list' | 'readLog' | 'trimLog'>;
  log: Logger;
  budget: LogBudget;
  /** Whose output it copies; `host` unless it says another. */
  place?: 'host' | 'cluster';
}

interface Unit {
  id: string;
  origin: LogOrigin;
  position: string | null;
  /** Copied since the file was last trimmed. */
  bytes: number;
}

interface State extends ShipperParts {
  units: Map<string, Unit>;
  wakeSignal: WakeSignal;
  stopping: boolean;
  listedAt: number;
  droppedAt: number;
  /** Settles when the last queued batch is done: batches run one at a time. */
  turn: Promise<unknown>;
}

const POLL_MS = 500;
const LIST_MS = 3_000;
const OUTAGE_MS = 1_000;
const DROP_MS = 3_600_000;
/** Units whose files are looked at together. */
const ABREAST = 16;
/** Lines of a transaction, as far as chunks can be cut: one chunk more may be in it. */
const LINES = 1_000;
const TRIM_BYTES = 4 * 1024 * 1024;

/** Starts copying in the background. One process for each runtime. */
export function startShipper(parts: ShipperParts): Shipper {
  const state: State = {
    ...parts,
    units: new Map(),
    wakeSignal: openWakeSignal(),
    stopping: false,
    listedAt: -Infinity,
    droppedAt: performance.now(),
    turn: Promise.resolve(),
  };
  const ended = run(state);
  return {
    noticeUnit() {
      state.listedAt = -Infinity;
      state.wakeSignal.notify();
    },
    async shipRemaining(unitId) {
      // Others have their turn between the chunks: a unit may have printed a million lines.
      while (await serialized(state, () => finishChunk(state, unitId)));
    },
    async stop() {
      state.stopping = true;
      state.wakeSignal.notify();
      await ended;
      await state.turn.catch(() => {});
    },
  };
}

async function run(state: State): Promise<void> {
  let away = false;
  while (!state.stopping) {
    try {
      const more = await round(state);
      if (away) state.log.info('output of applications is copied again');
      away = false;
      // Only a round without further output waits.
      if (!more) await state.wakeSignal.wait(POLL_MS);
    } catch (error) {
      if (!away) state.log.warn({ err: error }, 'output of applications could not be copied; it stays in its files');
      away = true;
      await state.wakeSignal.wait(OUTAGE_MS);
    }
  }
}

/** Looks at each unit once. Whether one has more. */
async function round(state: State): Promise<boolean> {
  if (performance.now() - state.listedAt > LIST_MS) await serialized(state, () => refresh(state));
  const all = [...state.units.values()];
  let more = false;
  for (let start = 0; start < all.length && !state.stopping; start += ABREAST) {
    if (await serialized(state, () => copy(state, all.slice(start, start + ABREAST)))) more = true;
  }
  return more;
}

/** The units that there are: whose they are and how far they are, of those that are new. */
async function refresh(state: State): Promise<void> {
  const ids = await state.runtime.list();
  const listedAt = performance.now();
  const present = new Set(ids);
  for (const id of state.units.keys()) if (!present.has(id)) state.units.delete(id);
  await trackUnits(
    state,
    ids.filter((id) => !state.units.has(id)),
  );
  if (listedAt - state.droppedAt > DROP_MS) {
    await dropLogPositions(state.database, unitOwners(), ids, state.place ?? 'host');
    state.droppedAt = listedAt;
  }
  state.listedAt = listedAt;
}

async function trackUnits(state: State, ids: readonly string[]): Promise<void> {
  if (!ids.length) return;
  const origins = await originsOfUnits(state.database, ids);
  const positions = await logPositions(state.database, [...origins.keys()]);
  for (const [id, origin] of origins)
    state.units.set(id, { id, origin, position: positions.get(id) ?? null, bytes: 0 });
}

/** Copies a chunk of a unit that has ended. Whether it has more. */
async function finishChunk(state: State, unitId: string): Promise<boolean> {
  if (!state.units.has(unitId)) await trackUnits(state, [unitId]);
  const unit = state.units.get(unitId);
  // The row and the reader of this unit are gone.
  if (!unit) return false;
  const more = await copy(state, [unit]);
  if (!more) state.units.delete(unitId);
  return more;
}

interface Copied {
  unit: Unit;
  chunk: LogChunk;
}

/** Copies a chunk of each of the units. Whether one has more. */
async function copy(state: State, units: readonly Unit[]): Promise<boolean> {
  const read = await Promise.all(units.map((unit) => readChunk(state, unit)));
  const fresh = read.filter((one): one is Copied => one !== null && one.chunk.position !== one.unit.position);
  let batch: Copied[] = [];
  let lines = 0;
  for (const one of fresh) {
    batch.push(one);
    lines += one.chunk.lines.length;
    if (lines < LINES) continue;
    await store(state, batch);
    [batch, lines] = [[], 0];
  }
  if (batch.length) await store(state, batch);
  for (const { unit } of fresh) await trim(state, unit);
  return fresh.some(({ chunk }) => chunk.more);
}

async function readChunk({ runtime, log }: State, unit: Unit): Promise<Copied | null> {
  try {
    return { unit, chunk: await runtime.readLog(unit.id, unit.position) };
  } catch (error) {
    log.warn({ err: error, unit: unit.id }, 'the output of a unit could not be read');
    return null;
  }
}

async function store(state: State, batch: readonly Copied[]): Promise<void> {
  const at = new Date();
  const lines = batch.flatMap((one) => keptLines(state.budget, one, at));
  const moves = batch.map(({ unit, chunk }) => ({ unit_id: unit.id, from: unit.position, to: chunk.position }));
  try {
    await state.database.transaction(async (sql) => {
      await moveLogPositions(sql, moves);
      await appendLogLines(sql, lines);
    });
  } catch (error) {
    // It may have been committed before the connection broke: only the table knows.
    for (const { unit } of batch) state.units.delete(unit.id);
    state.listedAt = -Infinity;
    throw error;
  }
  for (const { unit, chunk } of batch) {
    unit.position = chunk.position;
    unit.bytes += chunk.lines.reduce((sum, { text }) => sum + text.length + 1, 0);
  }
}

function keptLines(budget: LogBudget, { unit: { origin }, chunk }: Copied, at: Date): LogLineInput[] {
  const key = budgetKeyOf(origin);
  const lines = chunk.lines
    .filter(({ text }) => budget.take(key, Buffer.byteLength(text)))
    .map(({ text }): LogLineInput => ({ ...origin, at, source: 'app', level: levelOf(text), message: text }));
  const lost = budget.lost(key);
  return lost ? [...lines, { ...origin, at, source: 'system', level: 'warning', message: lossMessage(lost) }] : lines;
}

/** Deployments are counted together, and so are runs: there may be any number of them. */
function budgetKeyOf({ application_id, preview_id, run_id, step }: LogOrigin): string {
  if (step) return `${application_id}.deployments`;
  return run_id ? `${application_id}.runs` : (preview_id ?? application_id);
}

async function trim({ runtime, log }: State, unit: Unit): Promise<void> {
  // Clients read the output of a run from its files, and it is limited.
  if (unit.bytes < TRIM_BYTES || unit.position === null || unit.origin.run_id) return;
  unit.bytes = 0;
  await runtime
    .trimLog(unit.id, unit.position)
    .catch((error: unknown) => log.warn({ err: error, unit: unit.id }, 'the output of a unit could not be trimmed'));
}

/** Runs after all earlier work, whether that failed or not. */
function serialized<T>(state: State, work: () => Promise<T>): Promise<T> {
  const mine = state.turn.then(work, work);
  state.turn = mine.catch(() => {});
  return mine;
}
