// Start to ready with an existing data directory and the settings of a new installation, the embedded database
// included.
import { median } from './measure';
import { isSelected } from './plan';
import { startApi } from './processes';
import { verdictOf, single, type Row } from './report';
import type { Stage } from './stage';

const TARGET_SECONDS = 2;

export async function timeStarts({ dataDir, plan }: Stage, node: string): Promise<Row[]> {
  if (!isSelected(plan, 'start')) return [];
  const seconds: number[] = [];
  const memory: number[] = [];
  for (let index = 0; index < plan.starts; index += 1) {
    const api = await startApi({ node }, dataDir, {});
    memory.push((await api.usage()).rss / 1e6);
    seconds.push(api.startMs / 1000);
    await api.stop();
  }
  const all = seconds.map((value) => value.toFixed(2)).join(', ');
  return [
    single(
      'start to ready, existing data directory',
      `${median(seconds).toFixed(2)} s (${all})`,
      verdictOf(median(seconds), 'below', TARGET_SECONDS, ' s'),
    ),
    single('memory when ready, worker included', `${median(memory).toFixed(0)} MB`, verdictOf(0, 'below', undefined)),
  ];
}
