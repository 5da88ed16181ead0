// Cost of idle databases: memory and CPU time of the service and of its embedded database, before and after.
import type { Stage } from '../../demo/stage';
import { memoryOf, type EngineName } from './databases_server';
import { measureCost } from '../idle';

/** A tenth of them. */
const POSTGRESQL_SHARE = 0.1;
const SETTLE_MS = 30_000;
const WINDOW_MS = 60_000;
const READY_WITHIN_MS = 900_000;

/** Creates `count` databases of the smallest packages, and prints the difference. */
export async function idleDatabases(
  stage: Stage,
  engines: EngineName[],
  count: number,
  print: (line: string) => void,
): Promise<void> {
  const before = await measureCost(stage, SETTLE_MS, WINDOW_MS);
  const begin = performance.now();
  const made = await createMany(stage, enginesOf(engines, count));
  const took = (performance.now() - begin) / 1000;
  const after = await measureCost(stage, SETTLE_MS, WINDOW_MS);
  print(
    '| Idle databases | memory of the service, MiB | its CPU, ms/s | CPU of its own database, ms/s |\n' +
      '|---|--:|--:|--:|',
  );
  for (const [name, { memory, service, database }] of [
    ['0', before],
    [String(count), after],
  ] as const)
    print(`| ${name} | ${memory.toFixed(0)} | ${service.toFixed(1)} | ${database.toFixed(1)} |`);
  const servers = engines.map((engine) => {
    const own = made.filter((one) => one.engine === engine).map(({ id }) => memoryOf(id));
    return own.length ? `${own.length} of ${engine} take ${own.reduce((sum, one) => sum + one, 0).toFixed(0)} MiB` : '';
  });
  print(
    `\n${count} databases were there after ${took.toFixed(0)} s. Their servers: ${servers.filter(Boolean).join(', ')}.`,
  );
}

function enginesOf(engines: EngineName[], count: number): EngineName[] {
  const few = engines.includes('postgresql') ? Math.ceil(count * POSTGRESQL_SHARE) : 0;
  const many = engines.includes('redis') ? 'redis' : (engines[0] as EngineName);
  return Array.from({ length: count }, (_, index) => (index < few ? 'postgresql' : many));
}

async function createMany({ api }: Stage, engines: EngineName[]): Promise<{ id: string; engine: EngineName }[]> {
  const made: { id: string; engine: EngineName }[] = [];
  for (const [index, engine] of engines.entries()) {
    const { id } = await api.call('POST', '/v2/databases', {
      name: `idle-${index}`,
      engine,
      backup_schedule: { enabled: engine === 'postgresql' },
    });
    made.push({ id, engine });
  }
  for (const status of ['provisioning', 'failed'])
    await api.until<{ data: unknown[] }>(
      `/v2/databases?status=${status}&limit=1`,
      ({ data }) => data.length === 0,
      READY_WITHIN_MS,
    );
  return made;
}
