// Two replicas on one PostgreSQL beside one: single reads. Where they would compete for the cores with their database
// and the load, each is held to a part of one.
import { writeFile } from 'node:fs/promises';
import os from 'node:os';
import { procsFiles, findGroups, groupOf, makeGroup, removeGroup, type Group } from '../../drivers/runtime/cgroup';
import { streams } from './cases';
import { load } from './load';
import { CONNECTIONS, median } from './measure';
import { isSelected } from './plan';
import { startApi, type Server } from './processes';
import { verdictOf, ratioOf, skipped, whole, type Row } from './report';
import { FACES, type Stage, withDatabase } from './stage';

const TARGET = 1.7;
/** Two replicas, their database and the load, a core each. */
const CORES_MIN = 4;
/** Of a core, for each replica: both, database and load then take one of two. */
const SHARE = 0.3;
/** In rounds. While code is compiled, which takes a while of such a part, rates mean nothing. */
const WARM_UP = 4;
const ROUND = 2;

export async function replicas(stage: Stage, node: string): Promise<Row[]> {
  const { plan, dataDir } = stage;
  if (!isSelected(plan, 'replicas')) return [];
  const cores = os.availableParallelism();
  const groups = cores < CORES_MIN ? await findGroups() : null;
  if (cores < CORES_MIN && !groups)
    return [
      skipped(
        '2 replicas on one PostgreSQL',
        `${cores} cores; two replicas, database and load need ${CORES_MIN}, or control groups`,
      ),
    ];
  return withDatabase(dataDir, async (url) => {
    const settings = { ...FACES, DATABASE_URL: url, RATE_LIMIT_STORE: 'postgres' };
    const both: Server[] = [];
    const held: Group[] = [];
    try {
      for (let index = 0; index < 2; index += 1) both.push(await startApi({ node }, dataDir, settings));
      await rate(both, stage, WARM_UP);
      if (groups) for (const { pid } of both) held.push(await hold(groups, pid));
      return [await rowOf(both, stage, `${cores} cores${groups ? `, each held to ${SHARE} of one` : ''}`)];
    } finally {
      for (const server of both) await server.stop();
      for (const group of held) await removeGroup(group);
    }
  });
}

async function hold(groups: Group, pid: number): Promise<Group> {
  const group = groupOf(groups, `bench-${pid}`);
  await makeGroup(group, {
    memory_mb: 1024,
    cpus: SHARE,
    processes: 100,
    time_ms: null,
    output_bytes: 0,
    disk_mb: null,
  });
  for (const entrance of procsFiles(group)) await writeFile(entrance, String(pid));
  return group;
}

async function rowOf(both: Server[], stage: Stage, where: string): Promise<Row> {
  const [alone, together]: [number[], number[]] = [[], []];
  for (let round = 0; round < stage.plan.rounds; round += 1) {
    alone.push(await rate(both.slice(0, 1), stage, ROUND));
    together.push(await rate(both, stage, ROUND));
  }
  const ratios = together.map((two, index) => two / (alone[index] as number));
  const of = (rates: number[]): string => `${whole(median(rates))} rps`;
  return {
    measure: `2 replicas on one PostgreSQL, ${where}`,
    beside: 'one replica',
    ours: of(together),
    theirs: of(alone),
    ratio: ratioOf(ratios),
    cpu: '',
    ...verdictOf(median(ratios), 'at least', TARGET),
  };
}

/** Combined requests per second, with separate connections per server, for `length` of the usual rounds. */
async function rate(servers: Server[], { data, plan }: Stage, length: number): Promise<number> {
  const { get } = streams(data);
  const rounds = await Promise.all(
    servers.map(({ port }) =>
      load({ port, connections: CONNECTIONS, milliseconds: plan.milliseconds * length, next: get }),
    ),
  );
  return rounds.reduce((sum, { rps }) => sum + rps, 0);
}
