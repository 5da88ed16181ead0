// An instance that does not listen on its assigned port: the message for its owner, and whether the platform uses the
// port on which it listens instead (docs/decisions/0175).
import type { Handle, Listener } from '../../../drivers/runtime';
import { saveFoundPort, type Launch } from '../../../models/applications/instance_work';
import { appendLogLines } from '../../../models/applications/log_line';
import { progressing, requireHost, type JobContext, type Outcome } from '../../job';
import { shipLastLines } from '../../unit_log';
import { answersHttp } from './health';
import { exposedPortOf, sharedPortAdvice } from './image';
import { restartStop, type InstanceRow } from './row';

export interface HealthFault {
  /** Warning with a fix for the user, while the instance can still become healthy. */
  early?: string;
  /** More time would not help. */
  isOver?: boolean;
  /** The one port of all addresses on which it listens, where that could be led to. */
  otherPort?: number;
  after(seconds: number): string;
}

/** @param listeners listening sockets of the instance that are reachable from outside its unit */
export function portFault(row: InstanceRow, launch: Launch, listeners: Listener[], ctx: JobContext): HealthFault {
  const { exposesPorts } = requireHost(ctx).runtime;
  const chosen = exposedPortOf(row, launch.settings);
  const given = (exposesPorts ? (chosen ?? launch.found_port) : null) ?? row.port ?? 0;
  const advice = chosen === null ? null : adviceOn(chosen, exposesPorts, launch.settings);
  if (listeners.length === 0) {
    const what = advice ?? 'Listen on the port that the PORT variable names.';
    return { after: (seconds) => `did not listen on PORT ${given} within ${seconds} seconds. ${what}` };
  }
  const others = describeListeners(listeners.map((one) => (one.port === row.port ? { ...one, port: given } : one)));
  const where = `listens on ${others}. ${advice ?? portAdvice(listeners, row, exposesPorts)}`;
  const otherPort = chosen === null && exposesPorts ? otherPortOf(listeners) : null;
  return {
    early: `The app does not listen on PORT ${given} yet; it ${where}`,
    after: (seconds) => `did not listen on PORT ${given} within ${seconds} seconds; it ${where}`,
    ...(otherPort !== null && { otherPort }),
  };
}

const ALL_ADDRESSES = new Set(['0.0.0.0', '::']);

function isOpen({ address }: Listener): boolean {
  return ALL_ADDRESSES.has(address);
}

/** `3000, 9229 of 127.0.0.1 alone` */
function describeListeners(listeners: Listener[]): string {
  const ports = [...new Set(listeners.map(({ port }) => port))];
  return ports
    .map((port) => {
      const addresses = listeners.filter((one) => one.port === port);
      return addresses.some(isOpen)
        ? port
        : `${port} of ${addresses.map(({ address }) => address).join(' and ')} alone`;
    })
    .join(', ');
}

// In an isolated network, forwarded connections also reach listeners on 127.0.0.1.
function portAdvice(listeners: Listener[], row: InstanceRow, exposesPorts: boolean): string {
  const reachable = listeners.filter((one) => isOpen(one) || one.address.startsWith('127.'));
  const ports = [...new Set(reachable.map(({ port }) => port))];
  if (ports.length === 0) return 'Use the PORT variable, and listen on 0.0.0.0.';
  if (!exposesPorts || ports.includes(row.port ?? 0)) return 'Use the PORT variable.';
  const suggestion = ports.length === 1 ? ports[0] : 'the one that serves';
  return `Use the PORT variable, or set \`http.port\` to ${suggestion}.`;
}

/** A program that listens at the loopback interface does not mean to be reached by others. */
function otherPortOf(listeners: Listener[]): number | null {
  const [port, ...more] = new Set(listeners.map((one) => one.port));
  return port !== undefined && more.length === 0 && listeners.some(isOpen) ? port : null;
}

function adviceOn(exposed: number, isOwn: boolean, settings: Launch['settings']): string {
  if (!isOwn) return sharedPortAdvice(exposed, settings);
  const what = settings.image ? 'the port that the image exposes' : 'the port that the PORT variable names';
  return `Listen on ${what}, or set \`http.port\` to the port of the program.`;
}

/** Ports of debuggers and of metrics may be there first. */
const ALONE_MS = 10_000;

/**
 * Restarts the instance in an isolated network where it can have this port, as with `http.port`. null where the
 * instance is not moved, or not yet. A program that listens on a different port at each start is not followed.
 */
export async function moveToOtherPort(
  row: InstanceRow,
  launch: Launch,
  handle: Handle,
  { port, upMs, allowedMs }: { port: number; upMs: number; allowedMs: number },
  ctx: JobContext,
): Promise<Outcome | null> {
  const before = launch.own_found_port;
  if ((before !== null && before !== port) || upMs < Math.min(ALONE_MS, allowedMs / 2)) return null;
  const { runtime } = requireHost(ctx);
  const target = { location: runtime.locationOf(handle.unit_id), port };
  if (!(await answersHttp(target, launch.hostname, ctx.signal))) return null;
  if (before === null) {
    await saveFoundPort(ctx.sql, launch.deployment_id, port);
    await appendFoundPort(row, port, ctx);
  }
  await runtime.stop(handle, restartStop(launch), ctx);
  await shipLastLines(requireHost(ctx), row.id);
  await runtime.destroy(row.id, ctx);
  return progressing(0, { handle: null, port: null, started_at: null, status_reason: null });
}

function appendFoundPort(row: InstanceRow, port: number, ctx: JobContext): Promise<void> {
  const { project_id, application_id, preview_id, process_type, deployment_id, id } = row;
  const message =
    `The app listens on port ${port} and not on PORT ${row.port}, so the platform starts it again with PORT ${port} ` +
    `and leads requests there. Set \`http.port\` to ${port} to save this restart.`;
  const place = { project_id, application_id, preview_id, process_type, deployment_id, instance_id: id };
  return appendLogLines(ctx.sql, [{ ...place, source: 'system', step: 'deploy', level: 'warning', message }]);
}
