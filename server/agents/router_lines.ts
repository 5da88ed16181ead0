// The ingress's line for each request, as lines of the log with source `router`. Written in batches; where more come
// than can be stored they are left out and counted, rather than eat memory: serving goes before logging.
import type { Logger } from '../../core/log/log';
import { repeatWork } from '../../core/process/background';
import type { AccessLine } from '../../engines/ingress/ingress';
import type { LogBudget } from '../../core/log/log_budget';
import type { ControlDatabase } from '../../db/control_database';
import { appendLogLines, type LogLineInput } from '../../models/applications/log_line';
import { originsOfApplications, originsOfUnits, type LogOrigin } from '../../models/applications/log_origin';

export interface RouterLines {
  /** Given to the ingress. Never waits, never throws. */
  line(line: AccessLine): void;
  /** Writes what waits, and ends. */
  close(): Promise<void>;
}

const WRITE_EVERY_MS = 400;
/**
 * Of one application between two batches, a thousand a second: a line costs as much as forwarding the request. Failures
 * count extra.
 */
const LINES_PER_BATCH_MAX = 400;
/** Of a line beside the path. */
const REST_BYTES = 128;
const BATCH = 2_000;
const WAITING_MAX = 20_000;
const ORIGINS_MAX = 10_000;

interface RouterLinesParts {
  database: ControlDatabase;
  log: Logger;
  budget: LogBudget;
}

interface State extends RouterLinesParts {
  waiting: AccessLine[];
  /** Taken since the last batch, by application. */
  taken: Map<string, number>;
  /** Left out since the last batch, by application. */
  lost: Map<string, number>;
  origins: Map<string, LogOrigin>;
}

/** Writes at least every half second. */
export function openRouterLines(parts: RouterLinesParts): RouterLines {
  const state: State = {
    ...parts,
    waiting: [],
    taken: new Map(),
    lost: new Map(),
    origins: new Map(),
  };
  const { log } = parts;
  const failure = 'The router lines could not be written to the log.';
  const { finish } = repeatWork({ name: 'router_lines', everyMs: WRITE_EVERY_MS, log, failure }, () => {
    state.taken.clear();
    return writeAll(state);
  });
  return {
    line(line) {
      if (hasRoom(state, line)) state.waiting.push(line);
      else state.lost.set(line.application_id, (state.lost.get(line.application_id) ?? 0) + 1);
    },
    close: finish,
  };
}

function hasRoom({ waiting, taken, budget }: State, line: AccessLine): boolean {
  const { application_id, status, path } = line;
  if (waiting.length >= WAITING_MAX) return false;
  const count = taken.get(application_id) ?? 0;
  if (count >= LINES_PER_BATCH_MAX && status < 500) return false;
  if (!budget.take(`${application_id}.router`, path.length + REST_BYTES)) return false;
  taken.set(application_id, count + 1);
  return true;
}

async function writeAll(state: State): Promise<void> {
  while (state.waiting.length || state.lost.size) {
    const batch = state.waiting.slice(0, BATCH);
    const lost = new Map(state.lost);
    await write(state, batch, lost);
    state.waiting.splice(0, batch.length);
    for (const [id, count] of lost) subtractLost(state.lost, id, count);
  }
}

function subtractLost(lost: Map<string, number>, id: string, count: number): void {
  const left = (lost.get(id) ?? 0) - count;
  if (left > 0) lost.set(id, left);
  else lost.delete(id);
}

async function write(state: State, batch: readonly AccessLine[], lost: ReadonlyMap<string, number>): Promise<void> {
  await loadOrigins(state, batch, lost);
  const lines = [
    ...batch.map((line) => routerLine(state, line)),
    ...[...lost].map(([id, count]) => lossLine(state, id, count)),
  ];
  await appendLogLines(
    state.database,
    lines.filter((line) => line !== null),
  );
}

/** Loads the owners of lines, once for each instance and application. */
async function loadOrigins(
  { database, origins }: State,
  batch: readonly AccessLine[],
  lost: ReadonlyMap<string, number>,
): Promise<void> {
  if (origins.size > ORIGINS_MAX) origins.clear();
  const missing = (ids: Iterable<string | null>): string[] =>
    [...new Set(ids)].filter((id): id is string => id !== null && !origins.has(id));
  const instances = missing(batch.map(({ instance_id }) => instance_id));
  const applications = missing([...batch.map(({ application_id }) => application_id), ...lost.keys()]);
  if (instances.length) for (const [id, origin] of await originsOfUnits(database, instances)) origins.set(id, origin);
  if (applications.length)
    for (const [id, origin] of await originsOfApplications(database, applications)) origins.set(id, origin);
}

/** Null for an application that is gone. */
function routerLine({ origins }: State, line: AccessLine): LogLineInput | null {
  const application = origins.get(line.application_id);
  if (!application) return null;
  const instance = line.instance_id === null ? undefined : origins.get(line.instance_id);
  const origin = instance ?? { ...application, preview_id: line.preview_id, instance_id: line.instance_id };
  return {
    ...origin,
    at: line.at,
    source: 'router',
    level: line.status >= 500 ? 'error' : 'info',
    message: messageOf(line),
  };
}

function messageOf(line: AccessLine): string {
  const words = [line.method, line.path, line.status, `${Math.round(line.duration_ms)}ms`, `${line.bytes_sent}B`];
  words.push(`host=${line.host}`, `ip=${line.client_address}`, `request_id=${line.request_id}`);
  if (line.reason !== null) words.push(`reason=${line.reason}`);
  return words.join(' ');
}

function lossLine({ origins }: State, applicationId: string, count: number): LogLineInput | null {
  const origin = origins.get(applicationId);
  const lines = count === 1 ? 'line was' : 'lines were';
  const message = `${count} router ${lines} left out: requests arrived faster than lines could be stored.`;
  return origin ? { ...origin, source: 'system', level: 'warning', message } : null;
}
