// What a refusal costs, in single reads of the same run: processor time of the service and of the database.
import { limited, refusals, streams, unknownToBare, type Refusal, type Stream } from './cases';
import { databaseCpu } from './database_cpu';
import { load } from './load';
import { measure, median } from './measure';
import { isSelected } from './plan';
import { startApi, startReference, type Server } from './processes';
import { verdictOf, ratioOf, whole, type Row } from './report';
import { FACES, type Stage, withDatabase } from './stage';

const WINDOW_MS = 60_000;

interface Cost {
  /** Microseconds per request. */
  service: number;
  database: number;
}

export async function costOfRefusals(stage: Stage, node: string, print: (line: string) => void): Promise<Row[]> {
  if (!isSelected(stage.plan, 'refusals')) return [];
  const { dataDir, data } = stage;
  return withDatabase(dataDir, async (url) => {
    const api = await startApi({ node }, dataDir, FACES);
    const bare = await startReference({ node }, 'bare', [url, data.key]);
    const poor = await startApi({ node }, dataDir, { ...FACES, RATE_LIMIT_READ: '1' });
    try {
      const read = { api, next: streams(data).get };
      const rows: Row[] = [];
      for (const refusal of refusals(data)) {
        print(`  ${refusal.name}`);
        rows.push(await besideRead(url, stage, refusal, read, { api, next: refusal.next }));
      }
      const least = unknownToBare(data);
      rows.push(await besideRead(url, stage, least, read, { api: bare, next: least.next }));
      const refusal = limited(data);
      await useUp(poor, refusal, stage);
      rows.push(await besideRead(url, stage, refusal, read, { api: poor, next: refusal.next }));
      return rows;
    } finally {
      await api.stop();
      await bare.stop();
      await poor.stop();
    }
  });
}

interface Target {
  api: Server;
  next: Stream;
}

/** Refusal and read in turn. */
async function besideRead(
  url: string,
  stage: Stage,
  { name, target }: Refusal,
  read: Target,
  refused: Target,
): Promise<Row> {
  const found: Cost[] = [];
  const ratios: number[] = [];
  const reads: Cost[] = [];
  for (let round = 0; round <= roundsOf(stage); round += 1) {
    const [cost, whole] = [await costs(url, stage, refused), await costs(url, stage, read)];
    if (!round) continue; // warm-up
    found.push(cost);
    reads.push(whole);
    ratios.push(sum(cost) / sum(whole));
  }
  return {
    measure: name,
    beside: 'GET one volume',
    ours: show(found),
    theirs: show(reads),
    ratio: ratioOf(ratios),
    cpu: '',
    ...verdictOf(median(ratios), 'below', target),
  };
}

const roundsOf = ({ plan }: Stage): number => Math.min(plan.rounds, 5);
const sum = ({ service, database }: Cost): number => service + (database || 0);
const show = (found: Cost[]): string =>
  `${whole(median(found.map(({ service }) => service)))} + ${whole(median(found.map(({ database }) => database)))} µs`;

async function costs(url: string, { plan }: Stage, { api, next }: Target): Promise<Cost> {
  const before = await databaseCpu(url);
  const { cpu, requests } = await measure(api, next, plan.milliseconds / 2);
  return { service: cpu, database: (((await databaseCpu(url)) - before) / requests) * 1e6 };
}

/**
 * A budget of one call: from the second on, all are refused until the minute ends. It must not end while we measure.
 * The server has answered nothing yet, so it is warmed up: the others have gone through all the cases before.
 */
async function useUp(api: Server, { next }: Refusal, stage: Stage): Promise<void> {
  const warm = stage.plan.milliseconds * 2;
  const needed = warm + stage.plan.milliseconds * (roundsOf(stage) + 1) * 2;
  const left = WINDOW_MS - (Date.now() % WINDOW_MS);
  if (left < needed) await new Promise((resolve) => setTimeout(resolve, left + 50));
  await load({ port: api.port, connections: 1, milliseconds: 0, next: () => ({ ...next(), status: 200, body: null }) });
  await measure(api, next, warm);
}
