// Keeps rows of instances in step with the pods of a cluster: the API, deployments and routes read the rows.
import type { Logger } from '../../../core/log/log';
import { repeatWork } from '../../../core/process/background';
import type { ControlDatabase } from '../../../db/control_database';
import type { WorkloadDriver, WorkloadInstance } from '../../../drivers/workload';
import type { Shipper } from '../shipper';
import type { ReachCheck } from './reach';
import { confirmPodRows } from '../../../models/applications/cluster_facts';
import {
  knownPods,
  noteLeavingPod,
  removePodInstances,
  savePodInstance,
} from '../../../models/applications/pod_instance';

interface PodRows {
  /** Stops after the present write. */
  close(): Promise<void>;
}

interface Parts {
  database: ControlDatabase;
  workloads: WorkloadDriver;
  shipper: Pick<Shipper, 'shipRemaining'>;
  reach: Pick<ReachCheck, 'noticed'>;
  log: Logger;
  /** Of a task that is no instance. */
  taskChanged(id: string): void;
}

const RETRY_MS = 1_000;
const CONFIRM_EVERY_MS = 1_000;

interface State extends Parts {
  /** By uid, as they are to be written; null: removed. */
  waiting: Map<string, WorkloadInstance | null>;
  /** A complete list has come: rows without a pod in it go. */
  listed: ReadonlySet<string> | null;
  running: Promise<void> | null;
  /** Rows whose last lines are copied. */
  leaving: Map<string, Promise<void>>;
  retry: NodeJS.Timeout | undefined;
  isClosed: boolean;
}

/** Starts in the background. A database that is away is waited for: of each pod the last state is written then. */
export function startPodRows(parts: Parts): PodRows {
  const state: State = {
    ...parts,
    ...{ waiting: new Map(), listed: null, running: null, leaving: new Map(), retry: undefined, isClosed: false },
  };
  const change = (uid: string, instance: WorkloadInstance | null): void => {
    state.waiting.set(uid, instance);
    parts.reach.noticed(uid, instance);
    wake(state);
  };
  const followed = parts.workloads.follow({
    listed(instances) {
      state.listed = new Set(instances.map(({ uid }) => uid));
      for (const instance of instances) change(instance.uid, instance);
      wake(state);
    },
    changed: (instance) => change(instance.uid, instance),
    removed: (uid) => change(uid, null),
    taskChanged: (id) => parts.taskChanged(id),
  });
  let confirmedAt = -Infinity;
  const failure = 'the rows of pods were not confirmed';
  const { log } = parts;
  const confirming = repeatWork({ name: 'pod_rows', everyMs: CONFIRM_EVERY_MS, log, failure }, async () => {
    const { provenAt } = followed;
    if (provenAt <= confirmedAt || !isWritten(state)) return;
    confirmedAt = provenAt;
    // Ingresses that cannot ask the cluster rely on the rows for a while after it.
    await confirmPodRows(parts.database, provenAt);
  });
  return {
    async close() {
      state.isClosed = true;
      await confirming.stop();
      followed.stop();
      clearTimeout(state.retry);
      await state.running;
      await Promise.allSettled(state.leaving.values());
    },
  };
}

const isWritten = ({ waiting, listed, running }: State): boolean =>
  running === null && listed === null && waiting.size === 0;

function wake(state: State): void {
  state.running ??= writeAll(state)
    .catch((error: unknown) => retryLater(state, error))
    .finally(() => (state.running = null));
}

function retryLater(state: State, error: unknown): void {
  if (state.isClosed) return;
  state.log.warn({ err: error }, 'the state of pods could not be written; it is tried again');
  clearTimeout(state.retry);
  state.retry = setTimeout(() => wake(state), RETRY_MS);
}

async function writeAll(state: State): Promise<void> {
  const { database, waiting } = state;
  while (!state.isClosed && (state.listed !== null || waiting.size > 0)) {
    if (state.listed !== null) await noteAbsent(state, state.listed);
    const next = waiting.entries().next().value;
    if (!next) continue;
    const [uid, instance] = next;
    if (instance === null) removeLater(state, uid);
    else await savePodInstance(database, instance).catch((error: unknown) => putLast(state, uid, error));
    // What has come meanwhile is newer.
    if (waiting.get(uid) === instance) waiting.delete(uid);
  }
}

/** A row that cannot be written holds up no other. */
function putLast({ waiting }: State, uid: string, error: unknown): never {
  const instance = waiting.get(uid) ?? null;
  waiting.delete(uid);
  waiting.set(uid, instance);
  throw error;
}

async function noteAbsent(state: State, listed: ReadonlySet<string>): Promise<void> {
  for (const uid of await knownPods(state.database))
    if (!listed.has(uid) && !state.waiting.has(uid)) {
      state.waiting.set(uid, null);
      state.reach.noticed(uid, null);
    }
  if (state.listed === listed) state.listed = null;
}

/** Its last lines need the row. */
function removeLater(state: State, uid: string): void {
  if (state.leaving.has(uid)) return;
  const { database, workloads, shipper } = state;
  const remove = async (): Promise<void> => {
    await noteLeavingPod(database, uid);
    await workloads.logs.untilEnded(uid);
    await shipper.shipRemaining(`pod.${uid}`);
    await removePodInstances(database, [uid]);
  };
  const removal = remove()
    .catch((error: unknown) => {
      state.waiting.set(uid, null);
      retryLater(state, error);
    })
    .finally(() => state.leaving.delete(uid));
  state.leaving.set(uid, removal);
}
