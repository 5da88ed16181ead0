// Processes that answer on one port: this one holds its sockets (node:cluster) and what is served, for a process that
// takes the place of another.
import cluster, { type Worker } from 'node:cluster';
import type { CountersByZone, ZoneCounters } from '../nameserver';
import type { Answering, AnsweringOptions, ZoneText } from '../answering';
import { openProcessChannel, type Channel } from '../../../core/process/channel';
import { openSockets } from './sockets';

export interface GroupOptions extends AnsweringOptions {
  resolvers: string[];
  /** How many answer. */
  count: number;
}

const BATCH_ZONES = 200;
const RESTART_MS = 500;
/** One that takes longer to take over a zone hangs, and is replaced. */
const CALL_WITHIN_MS = 5_000;

interface Answerer extends Pick<Channel, 'call'> {
  worker: Worker;
}

interface Group {
  options: GroupOptions;
  zones: Map<string, ZoneText>;
  answerers: Set<Answerer>;
  port: number | null;
}

export async function openGroup(options: GroupOptions): Promise<Answering> {
  cluster.setupPrimary({ serialization: 'advanced' });
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const group: Group = { options, zones: new Map(), answerers: new Set(), port: null };
  await Promise.all(Array.from({ length: options.count }, () => start(group)));
  return {
    async put(zones) {
      for (const zone of zones) group.zones.set(zone.id, zone);
      await callAll(group, 'put', zones);
    },
    async remove(id) {
      group.zones.delete(id);
      await callAll(group, 'remove', id);
    },
    async listen(ports) {
      group.port ??= await listen(group, ports);
      return group.port;
    },
    port: () => group.port,
    takeCounters: async () => sumOf(await callAll<CountersByZone>(group, 'takeCounters')),
    close: async () => {},
  };
}

/**
 * A port is tried out here first: node numbers the attempts of a process, and processes share a socket only under the
 * same number. One that fails nevertheless makes room for a successor, which begins to count anew.
 */
async function listen({ options, answerers }: Group, ports: number[]): Promise<number> {
  const port = await freePortOf(ports, options.addresses);
  const tries = [...answerers].map(async ({ call, worker }) => {
    await call('listen', [port]).catch((error: unknown) => {
      worker.process.kill('SIGKILL');
      throw error;
    });
  });
  await Promise.any(tries).catch(({ errors }: AggregateError) => {
    throw errors[0] ?? new Error('no process to listen');
  });
  await Promise.allSettled(tries);
  return port;
}

/** @throws the errno of the last one where all are taken */
async function freePortOf(ports: number[], addresses: string[]): Promise<number> {
  let failure: unknown = new Error('no port to listen on');
  for (const port of ports) {
    try {
      const sockets = await openSockets(port, addresses, { respond: () => null });
      await sockets.close();
      return port;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Of those that run: what one that has ended missed, its successor gets. */
async function callAll<T>({ answerers }: Group, verb: string, argument?: unknown): Promise<T[]> {
  const results = await Promise.allSettled([...answerers].map((one) => callInTime<T>(one, verb, argument)));
  return results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

async function callInTime<T>(answerer: Answerer, verb: string, argument: unknown): Promise<T> {
  const timer = setTimeout(() => answerer.worker.process.kill('SIGKILL'), CALL_WITHIN_MS);
  try {
    return await answerer.call<T>(verb, argument);
  } finally {
    clearTimeout(timer);
  }
}

async function start(group: Group): Promise<void> {
  const { options, zones, answerers } = group;
  const worker = cluster.fork();
  const answerer: Answerer = { worker, call: openProcessChannel(worker.process, {}).call };
  // From here on, it is sent what changes.
  answerers.add(answerer);
  worker.on('exit', () => {
    answerers.delete(answerer);
    setTimeout(() => void start(group).catch(() => {}), RESTART_MS);
  });
  // Nobody knows how the kernel shares the questions of one network out.
  const responsesPerSecond = Math.ceil(options.responsesPerSecond / options.count);
  await answerer.call('open', { ...options, responsesPerSecond });
  const ids = [...zones.keys()];
  for (let from = 0; from < ids.length; from += BATCH_ZONES) {
    const batch = ids.slice(from, from + BATCH_ZONES).flatMap((id) => zones.get(id) ?? []);
    await answerer.call('put', batch);
  }
  if (group.port !== null) await answerer.call('listen', [group.port]).catch(() => worker.process.kill('SIGKILL'));
}

function sumOf(counters: CountersByZone[]): CountersByZone {
  const sum: CountersByZone = new Map();
  for (const [id, types] of counters.flatMap((one) => [...one])) {
    const known = sum.get(id) ?? new Map<string, ZoneCounters>();
    sum.set(id, known);
    for (const [type, counted] of types) {
      const before = known.get(type) ?? { queries: 0, noerror: 0, nxdomain: 0, servfail: 0 };
      for (const counter of Object.keys(counted) as (keyof ZoneCounters)[]) before[counter] += counted[counter];
      known.set(type, before);
    }
  }
  return sum;
}
