// The processes that serve the API: started, restarted when they end, stopped together.
import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { nextRestart, stopChild, type RestartPolicy } from '../../core/process/children';
import { openProcessChannel, type Channel } from '../../core/process/channel';
import type { Logger } from '../../core/log/log';
import { StartupError } from '../../core/startup_error';
import { watchHandover } from './handover';
import type { MetricList } from './metrics';

interface WebProcesses {
  /** Port of the API. */
  port: number;
  /** Resolves with the reason when one ends again and again. */
  failed: Promise<Error>;
  /** Number of web processes that serve requests. */
  serving(): number;
  /** Metrics of each web process; the last known ones if it does not respond soon. */
  metrics(): Promise<MetricList[]>;
  /** Lets open requests finish, and resolves when all have ended. */
  stop(): Promise<void>;
}

interface WebProcessesOptions {
  webConcurrency: number;
  shutdownGraceSeconds: number;
  /** Environment variables that override the environment of this process. */
  settings: Record<string, string>;
  log: Logger;
  /** Called when one serves. */
  listening(): void;
  /** The last metrics of a process that has ended. */
  ended(last: MetricList): void;
}

const RESTARTS: RestartPolicy = {
  shortLifeMs: 30_000,
  pausesMs: [0, 0, 250, 500, 1_000, 2_000],
  then: 'give up',
};
const METRICS_TIMEOUT_MS = 2_000;
/** Beyond the grace time, before a process that does not end is killed. */
const KILL_AFTER_GRACE_MS = 5_000;
const HANDOVER_CHECK_MS = 250;

interface WebProcess {
  worker: Worker;
  channel: Channel;
  begun: number;
  /** Short lives in its place before this one. */
  shortLives: number;
  /** That it serves on; null before. */
  port: number | null;
  /** Why it can't start. */
  reason: string | null;
  metrics: MetricList;
  /** Closes the connection that is being handed over to the process. */
  closeHanded(): void;
}

interface State extends WebProcessesOptions {
  phase: 'starting' | 'running' | 'stopping';
  processes: Set<WebProcess>;
  /** Called when all web processes serve, and when they cannot be kept running. */
  settle(outcome: number | Error): void;
}

/** Resolves when all serve. @throws StartupError where one can't start */
export async function startWebProcesses(options: WebProcessesOptions): Promise<WebProcesses> {
  // advanced: JSON has no NaN, which metrics may be.
  cluster.setupPrimary({ exec: require.resolve('./web'), args: [], serialization: 'advanced' });
  cluster.schedulingPolicy = cluster.SCHED_RR;
  const state: State = { ...options, phase: 'starting', processes: new Set(), settle: () => {} };
  const port = await new Promise<number | Error>((resolve) => {
    state.settle = resolve;
    for (let count = 0; count < options.webConcurrency; count += 1) start(state, 0);
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
  const handlers = {
    serving: (port: number) => markServing(state, web, port),
    failed: (reason: string) => void (web.reason = reason),
    attempt: (bucket: string) => broadcastAttempt(state, web, bucket),
  };
  const web: WebProcess = {
    worker,
    channel: openProcessChannel(worker.process, handlers),
    begun: performance.now(),
    shortLives,
    port: null,
    reason: null,
    metrics: [],
    closeHanded: watchHandover(worker),
  };
  state.processes.add(web);
  worker.on('exit', (code, signal) => handleExit(state, web, code, signal));
  worker.on('error', (error) => {
    // Also emitted for a message to a process that has just died, whose exit is reported separately.
    if (worker.process.pid === undefined) handleExit(state, web, null, error.message);
  });
}

function broadcastAttempt(state: State, web: WebProcess, bucket: string): void {
  for (const other of state.processes) if (other !== web) other.channel.send('attempt', bucket);
}

function markServing(state: State, web: WebProcess, port: number): void {
  web.port = port;
  state.listening();
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
  const livedMs = code === 0 ? null : performance.now() - web.begun;
  const { shortLives, pauseMs } = nextRestart(RESTARTS, web.shortLives, livedMs);
  if (pauseMs === null) return state.settle(new StartupError(`web processes end again and again: ${why}`));
  setTimeout(() => state.phase === 'running' && start(state, shortLives), pauseMs);
}

async function collectMetrics(state: State, processes: WebProcess[]): Promise<MetricList[]> {
  await Promise.all(processes.map(requestMetrics));
  // The counters of exited processes are kept in metrics.ts.
  return processes.filter((web) => state.processes.has(web)).map((web) => web.metrics);
}

async function requestMetrics(web: WebProcess): Promise<void> {
  const late = sleep(METRICS_TIMEOUT_MS, null, { ref: false });
  const list = await Promise.race([web.channel.call<MetricList>('metrics').catch(() => null), late]);
  if (list !== null) web.metrics = list;
}

async function stop(state: State): Promise<void> {
  state.phase = 'stopping';
  const processes = [...state.processes];
  const patienceMs = state.shutdownGraceSeconds * 1000 + KILL_AFTER_GRACE_MS;
  const timer = setInterval(() => processes.forEach((web) => web.closeHanded()), HANDOVER_CHECK_MS);
  await Promise.all(
    processes.map(({ worker }) => stopChild(worker.process, (child) => child.kill('SIGTERM'), patienceMs)),
  );
  clearInterval(timer);
}
