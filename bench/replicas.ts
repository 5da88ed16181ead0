// Two replicas on one PostgreSQL beside one: single reads.
import os from 'node:os';
import { streams } from './cases';
import { load } from './load';
import { CONNECTIONS, median } from './measure';
import { wanted } from './plan';
import { startApi, type Server } from './processes';
import { judge, ratioOf, skipped, whole, type Row } from './report';
import { FACES, type Stage, withDatabase } from './stage';

const TARGET = 1.7;
/** Two replicas, their database and the load. */
const CORES_MIN = 4;

export async function replicas(stage: Stage, node: string): Promise<Row[]> {
  const { plan, dataDir } = stage;
  if (!wanted(plan, 'replicas')) return [];
  const cores = os.availableParallelism();
  if (cores < CORES_MIN && !plan.only.includes('replicas')) return [skipped('2 replicas on one PostgreSQL', `${cores} cores; two replicas, database and load need ${CORES_MIN}`)];
  return withDatabase(dataDir, async (url) => {
    const settings = { ...FACES, DATABASE_URL: url, RATE_LIMIT_STORE: 'postgres' };
    const both: Server[] = [];
    try {
      for (let index = 0; index < 2; index += 1) both.push(await startApi({ node }, dataDir, settings));
      return [await rowOf(both, stage, cores)];
    } finally {
      for (const server of both) await server.stop();
    }
  });
}

async function rowOf(both: Server[], stage: Stage, cores: number): Promise<Row> {
  const [alone, together]: [number[], number[]] = [[], []];
  for (let round = 0; round <= stage.plan.rounds; round += 1) {
    const [one, two] = [await rate(both.slice(0, 1), stage), await rate(both, stage)];
    if (!round) continue; // warm-up
    alone.push(one);
    together.push(two);
  }
  const ratios = together.map((two, index) => two / (alone[index] as number));
  const of = (rates: number[]): string => `${whole(median(rates))} rps`;
  return { measure: `2 replicas on one PostgreSQL, ${cores} cores`, beside: 'one replica', ours: of(together), theirs: of(alone), ratio: ratioOf(ratios), cpu: '', ...judge(median(ratios), 'at least', TARGET) };
}

/** Requests per second of all of them together, each with its own connections. */
async function rate(servers: Server[], { data, plan }: Stage): Promise<number> {
  const { get } = streams(data);
  const rounds = await Promise.all(servers.map(({ port }) => load({ port, connections: CONNECTIONS, milliseconds: plan.milliseconds, next: get })));
  return rounds.reduce((sum, { rps }) => sum + rps, 0);
}
