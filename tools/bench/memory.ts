// Resident memory of the whole service, worker included, under minutes of mixed load.
import { setTimeout as sleep } from 'node:timers/promises';
import { compared, refusals, type Stream } from './cases';
import { load } from './load';
import { CONNECTIONS, median } from './measure';
import { isSelected } from './plan';
import { startApi, type Server } from './processes';
import { verdictOf, single, type Row } from './report';
import { OPEN, type Stage, withDatabase } from './stage';

const TARGET_MB = 200;
/** What two looks at a process that does not grow may differ by. */
const GROWTH_MB = 5;
const SAMPLES = 120;
const SAMPLE_MS_MIN = 250;

export async function memoryUnderLoad({ dataDir, data, plan }: Stage, node: string): Promise<Row[]> {
  if (!isSelected(plan, 'memory')) return [];
  return withDatabase(dataDir, async () => {
    const api = await startApi({ node }, dataDir, OPEN);
    try {
      const samples: number[] = [];
      const milliseconds = plan.minutes * 60_000;
      const sampler = sampleMemory(api, milliseconds, samples);
      const { requests } = await load({ port: api.port, connections: CONNECTIONS, milliseconds, next: mixed(data) });
      await sampler;
      return rowsOf(samples, plan.minutes, requests);
    } finally {
      await api.stop();
    }
  });
}

const ANSWERED = 4;

/** Reads, lists, GraphQL, PUT, and a refusal in three. Not what makes volumes: the worker would fill the disk. */
function mixed(data: Stage['data']): Stream {
  const cases = compared(data)
    .filter(({ name }) => !/^(?:POST|PATCH)/.test(name))
    .map(({ streams }) => streams.service as Stream);
  const all = [...Array.from({ length: ANSWERED }, () => cases).flat(), ...refusals(data).map(({ next }) => next)];
  let turn = 0;
  return () => (all[(turn += 1) % all.length] as Stream)();
}

async function sampleMemory(api: Server, milliseconds: number, samples: number[]): Promise<void> {
  const pause = Math.max(SAMPLE_MS_MIN, milliseconds / SAMPLES);
  for (const until = Date.now() + milliseconds; Date.now() < until; await sleep(pause))
    samples.push((await api.usage()).rss / 1e6);
}

function rowsOf(samples: number[], minutes: number, requests: number): Row[] {
  const quarter = (index: number): number =>
    median(samples.slice((index * samples.length) / 4, ((index + 1) * samples.length) / 4));
  const growth = quarter(3) - quarter(1);
  const quarters = [0, 1, 2, 3].map((index) => quarter(index).toFixed(0)).join(', ');
  const last = samples[samples.length - 1] as number;
  return [
    single(
      `memory after ${minutes} min of load, ${requests} requests`,
      `${last.toFixed(0)} MB, at most ${Math.max(...samples).toFixed(0)}`,
      verdictOf(last, 'below', TARGET_MB, ' MB'),
    ),
    single(
      'its growth, second to last quarter',
      `${growth.toFixed(1)} MB (quarters: ${quarters})`,
      verdictOf(growth, 'below', GROWTH_MB, ' MB'),
    ),
  ];
}
