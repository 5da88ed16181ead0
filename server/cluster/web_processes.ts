// The processes that serve the API: started, restarted when they end, stopped together.
import cluster, { type Worker } from 'node:cluster';
import type { Logger } from '../../core/log/log';
import { StartupError } from '../../core/startup_error';
import { watchHandover } from './handover';
import type { FromWeb, MetricList, ToWeb } from './messages';

interface WebProcesses {
  /** Of the API. */
  port: number;
  /** Resolves with the reason when one ends again and again. */
  failed: Promise<Error>;
  /** How many serve. */
  serving(): number;
  /** Of each that serves; its last ones where it does not answer soon. */
  metrics(): Promise<MetricList[]>;
  /** Lets open requests finish, and resolves when all have ended. */
  stop(): Promise<void>;
}

interface WebProcessesOptions {
  webConcurrency: number;
  shutdownGraceSeconds: number;
  /** Environment variables that differ from those of this process. */
  settings: Record<string, string>;
  log: Logger;
  /** The last metrics of a process that has ended. */
  ended(last: MetricList): void;
}

/** A process that ends sooner, and not in order, is started again more and more slowly, and at last no more. */
const SHORT_LIFE_MS = 30_000;
const SHORT_LIVES_MAX = 6;
/** After a second short life; twice as long after each further one. */
const BACKOFF_MS = 250;
const METRICS_TIMEOUT_MS = 2_000;
/** Beyond the grace time, before a process that does not end is killed. */
const KILL_AFTER_GRACE_MS = 5_000;
const HANDOVER_CHECK_MS = 250;

interface WebProcess {
  worker: Worker;
  begun: number;
  /** Short lives in its place before this one. */
  shortLives: number;
  /** That it serves on; null before. */
  port: number | null;
  /** Why it can't start. */
  reason: string | null;
  metrics: MetricList;
  /** Closes the connection that is on its way to it. */
  closeHanded(): void;
}

interface State extends WebProcessesOptions {
  phase: 'starting' | 'running' | 'stopping';
  processes: Set<WebProcess>;
  turn: number;
  /** Called when all serve, and when it can't go on. */
  settle(outcome: number | Error): void;
}

/** Resolves when all serve. @throws StartupError where one can't start */
export async function startWebProcesses(options: WebProcessesOptions): Promise<WebProcesses> {
  // advanced: JSON has no NaN, which metrics may be.
  cluster.setupPrimary({ exec: require.resolve('./web'), args: [], serialization: 'advanced' });
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const state: State = { ...options, phase: 'starting', processes: new Set(), turn: 0, settle: () => {} };
  const port = await new Promise<number | Error>((resolve) => {
    state.settle = resolve;
    for (let turn = 0; turn < options.webConcurrency; turn += 1) start(state, 0);
  });
  if (port instanceof Error) {
    await stop(state);
    throw port;
  }
  state.phase = 'running';
  const failed = new Promise<Error>(
    (resolve) => (state.settle = (outcome) => void (outcome instanceof Error && resolve(outcome))),
  );
  const serving = (): WebProcess[] => [...state.processes].filter((web) => web.port !== null);
  return {
    port,
    failed,
    serving: () => serving().length,
    metrics: () => collectMetrics(state, serving()),
    stop: () => stop(state),
  };
}

function start(state: State, shortLives: number): void {
  const worker = cluster.fork(state.settings);
  const web: WebProcess = {
    worker,
    begun: performance.now(),
    shortLives,
    port: null,
    reason: null,
    metrics: [],
    closeHanded: watchHandover(worker),
  };
  state.processes.add(web);
  worker.on('message', (message: FromWeb) => handleMessage(state, web, message));
  worker.on('exit', (code, signal) => handleExit(state, web, code, signal));
  worker.on('error', (error) => {
    // Of a message to a process that has just died, too: its exit is reported besides.
    if (worker.process.pid === undefined) handleExit(state, web, null, error.message);
  });
}

function handleMessage(state: State, web: WebProcess, message: FromWeb): void {
  if (message.kind === 'metrics') web.metrics = message.list;
  else if (message.kind === 'failed') web.reason = message.reason;
  else if (message.kind === 'attempt') broadcast(state, web, message);
  else markServing(state, web, message.port);
}

function broadcast(state: State, web: WebProcess, message: ToWeb): void {
  for (const other of state.processes) if (other !== web) sendMessage(other, message);
}

function markServing(state: State, web: WebProcess, port: number): void {
  web.port = port;
  state.log.info({ web: web.worker.id, pid: web.worker.process.pid }, 'a web process serves');
  if ([...state.processes].every((one) => one.port !== null)) state.settle(port);
}

function handleExit(state: State, web: WebProcess, code: number | null, signal: string | null): void {
  if (!state.processes.delete(web)) return;
  state.ended(web.metrics);
  if (state.phase === 'stopping') return;
  state.log.error({ web: web.worker.id, code, signal, reason: web.reason }, 'a web process ended');
  const why = web.reason ?? signal ?? `exit code ${code}`;
  if (state.phase === 'starting')
    return state.settle(new StartupError(web.reason ?? `a web process ended while it started: ${why}`));
  const short = code !== 0 && performance.now() - web.begun < SHORT_LIFE_MS;
  const shortLives = short ? web.shortLives + 1 : 0;
  if (shortLives === SHORT_LIVES_MAX)
    return state.settle(new StartupError(`web processes end again and again: ${why}`));
  setTimeout(
    () => state.phase === 'running' && start(state, shortLives),
    shortLives < 2 ? 0 : BACKOFF_MS * 2 ** (shortLives - 2),
  );
}

async function collectMetrics(state: State, processes: WebProcess[]): Promise<MetricList[]> {
  const turn = (state.turn += 1);
  await Promise.all(processes.map((web) => requestMetrics(web, turn)));
  // What an ended one counted is kept elsewhere.
  return processes.filter((web) => state.processes.has(web)).map((web) => web.metrics);
}

function requestMetrics(web: WebProcess, turn: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      web.worker.off('message', onAnswer).off('exit', done);
      resolve();
    };
    const onAnswer = (message: FromWeb): void => {
      if (message.kind === 'metrics' && message.turn === turn) done();
    };
    const timer = setTimeout(done, METRICS_TIMEOUT_MS);
    web.worker.on('message', onAnswer).once('exit', done);
    sendMessage(web, { kind: 'metrics', turn });
  });
}

function sendMessage({ worker }: WebProcess, message: ToWeb): void {
  if (worker.isConnected()) worker.send(message, undefined, () => {});
}

async function stop(state: State): Promise<void> {
  state.phase = 'stopping';
  const processes = [...state.processes];
  const timer = setInterval(() => processes.forEach((web) => web.closeHanded()), HANDOVER_CHECK_MS);
  await Promise.all(
    processes.map(({ worker }) => stopWorker(worker, state.shutdownGraceSeconds * 1000 + KILL_AFTER_GRACE_MS)),
  );
  clearInterval(timer);
}

function stopWorker({ process: child }: Worker, patienceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
    child.once('exit', () => {
      clearTimeout(timer);
      resolve();
    });
    child.kill('SIGTERM');
  });
}
