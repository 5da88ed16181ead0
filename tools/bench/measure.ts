// One server, or several in turn, under the load of one case.
import type { Case, Name, Stream } from './cases';
import { load, type Round } from './load';
import type { Server } from './processes';

export const CONNECTIONS = 32;

export interface Measured extends Round {
  /** Microseconds of the server process per request, user and system together. */
  cpu: number;
}

export type Servers = Partial<Record<Name, Server>>;
/** By server, the same round at the same place. */
export type Results = Partial<Record<Name, Measured[]>>;

export async function measure(server: Server, next: Stream, milliseconds: number): Promise<Measured> {
  const before = await server.usage();
  const round = await load({ port: server.port, connections: CONNECTIONS, milliseconds, next });
  const after = await server.usage();
  return { ...round, cpu: ((after.cpu - before.cpu) / round.requests) * 1e6 };
}

/**
 * A case on each of its servers in turn, round after round, so that a disturbance meets all of them; the first round
 * warms up.
 */
export async function alternate(
  servers: Servers,
  { streams }: Case,
  plan: { rounds: number; milliseconds: number },
): Promise<Results> {
  const results: Results = {};
  const names = (Object.keys(streams) as Name[]).filter((name) => servers[name]);
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (const name of names) {
      const measured = await measure(servers[name] as Server, streams[name] as Stream, plan.milliseconds);
      if (round) (results[name] ??= []).push(measured);
    }
    names.reverse(); // who comes first has the machine as the last one left it
  }
  return results;
}

export function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle - 0.5)] as number) + (sorted[Math.ceil(middle - 0.5)] as number)) / 2;
}
