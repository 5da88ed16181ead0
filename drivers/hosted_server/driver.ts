// Common structure of hosted server drivers: the differences between programs are the steps passed to hostedServer().
import { DriverError, asDriverErrors, checkpoint } from '../../core/driver';
import type { Desired, DriverContext, Ensured, Fingerprint, Observation } from '../../core/driver';
import type { HostedServerDriver, HostedServerSpec, ObservedHostedServer } from '../hosted_server';
import type { LogChunk } from '../runtime';
import {
  openServerDirectory,
  listServerDirectories,
  findServerDirectory,
  removeServerDirectory,
  type EngineContext,
  type ServerDirectory,
} from './server_directory';

/** Observed state, and a description of the pending changes for the operator; null = none. */
export interface Inspected<O> {
  observed: O;
  diff: string | null;
}

export interface ServerSteps<S extends HostedServerSpec, O extends ObservedHostedServer> {
  context: EngineContext;
  fingerprint(): Promise<Fingerprint>;
  /** Called for an owned directory only. @throws DriverError conflict where another server responds in its place */
  inspect(serverDirectory: ServerDirectory, r: Desired<S>, ctx: DriverContext): Promise<Inspected<O>>;
  /** As ResourceDriver.ensure. */
  ensure(r: Desired<S>, obs: Observation<O>, ctx: DriverContext): Promise<{ requeueMs?: number }>;
  /** Stops all processes of the server, including those of interrupted calls. */
  stop(id: string, ctx: DriverContext): Promise<void>;
  readLog(id: string, position: string | null): Promise<LogChunk>;
}

export function hostedServer<S extends HostedServerSpec, O extends ObservedHostedServer>(
  steps: ServerSteps<S, O>,
): HostedServerDriver<S, O> {
  const { context } = steps;
  return {
    name: context.name,
    fingerprint: () => steps.fingerprint(),
    observe: (r, ctx) => asDriverErrors(() => observe(steps, r, ctx)),
    ensure: (r, obs, ctx) => asDriverErrors(() => ensure(steps, r, obs, ctx)),
    remove: (r, _obs, ctx) => asDriverErrors(() => remove(steps, r.id, ctx)),
    stop: (id, ctx) => asDriverErrors(() => stop(steps, id, ctx)),
    forget: (id, ctx) => asDriverErrors(() => remove(steps, id, ctx)),
    async *list() {
      for (const id of await asDriverErrors(() => listServerDirectories(context)))
        yield { ref: { driver: context.name, name: id }, owner_id: id };
    },
    readLog: (id, position) => asDriverErrors(() => steps.readLog(id, position)),
  };
}

/** Quotes a word of a command line. */
export function shellQuoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

async function observe<S extends HostedServerSpec, O extends ObservedHostedServer>(
  steps: ServerSteps<S, O>,
  r: Desired<S>,
  ctx: DriverContext,
): Promise<Observation<O>> {
  checkpoint(ctx);
  const serverDirectory = await openServerDirectory(steps.context, r.id);
  if (serverDirectory === 'absent') return { state: 'absent' };
  if (serverDirectory === 'foreign')
    return { state: 'foreign', detail: 'Files that do not belong to the platform have the name of this server.' };
  try {
    const { observed, diff } = await steps.inspect(serverDirectory, r, ctx);
    const upToDate = diff === null && observed.state === (r.spec.running ? 'running' : 'stopped');
    return { state: 'present', observed, upToDate, ...(diff !== null && { diff }) };
  } catch (error) {
    if (!(error instanceof DriverError) || error.reason !== 'conflict') throw error;
    return { state: 'foreign', detail: error.message };
  }
}

async function ensure<S extends HostedServerSpec, O extends ObservedHostedServer>(
  steps: ServerSteps<S, O>,
  r: Desired<S>,
  obs: Observation<O>,
  ctx: DriverContext,
): Promise<Ensured> {
  checkpoint(ctx);
  const { requeueMs } = await steps.ensure(r, obs, ctx);
  checkpoint(ctx);
  return { ref: { driver: steps.context.name, name: r.id }, ...(requeueMs !== undefined && { requeueMs }) };
}

async function stop<S extends HostedServerSpec, O extends ObservedHostedServer>(
  steps: ServerSteps<S, O>,
  id: string,
  ctx: DriverContext,
): Promise<void> {
  checkpoint(ctx);
  if ((await findServerDirectory(steps.context, id)) !== 'foreign') await steps.stop(id, ctx);
}

async function remove<S extends HostedServerSpec, O extends ObservedHostedServer>(
  { context, stop }: ServerSteps<S, O>,
  id: string,
  ctx: DriverContext,
): Promise<void> {
  checkpoint(ctx);
  if ((await findServerDirectory(context, id)) === 'foreign') return;
  await stop(id, ctx);
  await removeServerDirectory(context, id, ctx);
}
