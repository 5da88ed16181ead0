// Derives the status of an application and of its process types from their instances.
import type { Application } from '../../../models/applications/application';
import {
  updateProcessStatus,
  type PresentInstance,
  type PresentWorkload,
  type ProcessState,
} from '../../../models/applications/stack';
import type { JobContext } from '../../job';
import { hasOutage, isOutageReason, outageReason } from './outage';
import { countRunning } from './stack_plan';

type ApplicationStatus = Application['status'];

const WEB = 'web';

/** Writes the process types' own columns. */
export async function updateProcessStatuses(
  processes: readonly ProcessState[],
  present: readonly PresentInstance[],
  atRest: ReadonlySet<string>,
  status: string,
  ctx: JobContext,
): Promise<void> {
  for (const process of processes) {
    const all = present.filter(({ process_id, candidate }) => process_id === process.process_id && !candidate);
    const desired = process.release_id === null || atRest.has(status) ? 0 : process.instances;
    await updateProcessStatus(ctx.sql, process, processStatus(process, all, desired), countRunning(all));
  }
}

function processStatus(
  process: ProcessState,
  all: readonly PresentInstance[],
  desired: number,
): ProcessState['status'] {
  const ours = all.filter(({ release_id, status }) => release_id === process.release_id && status !== 'stopping');
  const running = countRunning(all);
  const isOut = hasOutage(process, desired > 0 && running === 0);
  if (desired === 0) return all.length === 0 || process.release_id === null ? 'idle' : 'scaling';
  if (countRunning(ours) === desired && all.length === desired) return 'running';
  if (running === 0 && ours.some(({ status }) => status === 'crashed')) return 'crashed';
  if (process.status === 'crashed') return running > 0 ? 'running' : 'crashed';
  if (process.status !== 'running') return 'scaling';
  return isOut ? 'crashed' : 'running';
}

interface Observed {
  status: ApplicationStatus;
  /** Absent: as it was. */
  status_reason?: string | null;
}

interface ObservedApplication {
  status: ApplicationStatus;
  status_reason: string | null;
  current_deployment_id: string | null;
  processes: readonly ProcessState[];
  present: readonly PresentInstance[];
  workloads: readonly Pick<PresentWorkload, 'process_type' | 'obstacle' | 'candidate'>[];
  deploying: boolean;
}

/** The status that follows from what there is, and why where it is not a good one. */
export function applicationStatus(seen: ObservedApplication): Observed {
  switch (seen.status) {
    case 'new':
      return { status: seen.deploying ? 'deploying' : 'new' };
    case 'deploying':
      if (seen.current_deployment_id !== null) return { status: 'running', status_reason: null };
      return { status: seen.deploying ? 'deploying' : 'new' };
    case 'stopping':
      return { status: seen.present.every(({ candidate }) => candidate) ? 'stopped' : 'stopping' };
    case 'starting':
    case 'restarting':
      return statusAfterRestart(seen);
    case 'running':
    case 'crashed':
      return statusWhileRunning(seen);
    case 'stopped':
      return { status: 'stopped' };
  }
}

function statusAfterRestart(seen: ObservedApplication): Observed {
  const { status, processes, present } = seen;
  const desired = processes.filter(({ release_id, instances }) => release_id !== null && instances > 0);
  const done = desired.every((process) => isReplaced(process, instancesOf(process, present)));
  if (done) return { status: 'running', status_reason: null };
  const lost = present.find(({ status: one, candidate }) => one === 'crashed' && !candidate);
  // The old instances, where there are some, serve on.
  if (lost) return { status: 'running', status_reason: crashReason(lost) };
  const waiting = present.findLast((one) => one.status === 'starting' && one.status_reason !== null && !one.candidate);
  if (waiting) return { status, status_reason: `Process type ${waiting.process_type}: ${waiting.status_reason}` };
  return { status, ...reasonOfCluster(seen) };
}

/** The status of the process type is no criterion: it stays `running` while its instances are replaced. */
function isReplaced({ release_id, instances }: ProcessState, all: readonly PresentInstance[]): boolean {
  const alive = all.filter(({ status }) => status !== 'stopping');
  return alive.length === instances && alive.every((one) => one.release_id === release_id && one.status === 'running');
}

function statusWhileRunning(seen: ObservedApplication): Observed {
  const { status, processes, present } = seen;
  const web = processes.find(({ type }) => type === WEB);
  const reason = reasonOfCluster(seen);
  if (!web || web.release_id === null || web.instances === 0) return { status: 'running', ...reason };
  const ours = instancesOf(web, present);
  const isOut = hasOutage(web, countRunning(ours) === 0);
  if (countRunning(ours) > 0) {
    const isOver = status === 'crashed' || isOutageReason(seen.status_reason);
    return { status: 'running', ...(isOver && { status_reason: null }), ...reason };
  }
  const lost = ours.find((one) => one.status === 'crashed');
  if (lost) return { status: 'crashed', status_reason: crashReason(lost) };
  const status_reason = outageReason(WEB, present, seen.workloads);
  return { status: isOut ? 'crashed' : status, status_reason };
}

/** Why a cluster starts fewer instances than desired, and null once it has started all of them. */
function reasonOfCluster({ workloads, processes, present }: ObservedApplication): Pick<Observed, 'status_reason'> {
  const refused = workloads.find(({ obstacle, candidate }) => obstacle !== null && !candidate);
  if (refused) return { status_reason: `Process type ${refused.process_type}: ${refused.obstacle}` };
  const desired = processes.filter(({ release_id }) => release_id !== null);
  const isWhole = desired.every((process) => isReplaced(process, instancesOf(process, present)));
  return workloads.length && isWhole ? { status_reason: null } : {};
}

function instancesOf({ process_id }: ProcessState, present: readonly PresentInstance[]): PresentInstance[] {
  return present.filter((one) => one.process_id === process_id && !one.candidate);
}

function crashReason({ process_type, status_reason }: PresentInstance): string {
  return `Process type ${process_type}: ${status_reason ?? 'The instance ends each time that it is started.'}`;
}
