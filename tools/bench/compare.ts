// The cases beside the hand-written server; or, with --cpu-prof, the service alone under a profiler.
import { compared, type Case, type Name } from './cases';
import { alternate, measure, type Servers } from './measure';
import { isSelected } from './plan';
import { startApi, startReference, type Server } from './processes';
import { profiled, takeProfile } from './profile';
import { comparison, type Row } from './report';
import { FACES, settle, type Stage, withDatabase } from './stage';

export interface Options {
  node: string;
  print(line: string): void;
}

/** One row for each goal of the selected cases. */
export async function compareCases(stage: Stage, options: Options): Promise<Row[]> {
  const cases = compared(stage.data).filter(({ name }) => isSelected(stage.plan, name));
  if (!cases.length) return [];
  return withDatabase(stage.dataDir, async (url) => {
    const servers = await open(stage, url, cases, options);
    try {
      const rows: Row[] = [];
      for (const one of cases) {
        options.print(`  ${one.name}`);
        rows.push(...comparison(one, await alternate(servers, one, stage.plan)));
      }
      return rows;
    } finally {
      for (const server of Object.values(servers)) await server.stop();
      await settle(url);
    }
  });
}

/** The servers that these cases need. */
async function open(stage: Stage, url: string, cases: Case[], { node }: Options): Promise<Servers> {
  const { dataDir, data } = stage;
  const starts: Record<Name, () => Promise<Server>> = {
    service: () => startApi({ node }, dataDir, FACES),
    bare: () => startReference({ node }, 'bare', [url, data.key]),
    notifying: () => startReference({ node }, 'bare', [url, data.key]),
  };
  const names = new Set(cases.flatMap(({ streams }) => Object.keys(streams) as Name[]));
  const servers: Servers = {};
  for (const name of names) servers[name] = await starts[name]();
  return servers;
}

const PROFILED_MS = 6_000;

/** The selected cases one by one, each on a fresh service, warmed up and then profiled. */
export async function profileCases({ dataDir, data, plan }: Stage, { node, print }: Options): Promise<void> {
  for (const { name, streams } of compared(data).filter((one) => isSelected(plan, one.name))) {
    const { flags, settings, file } = profiled(plan.cpuProf as string, name);
    const api = await startApi({ node, flags }, dataDir, { ...FACES, ...settings });
    try {
      const run = async (milliseconds: number): Promise<void> =>
        void (await measure(api, streams.service as NonNullable<typeof streams.service>, milliseconds));
      await run(PROFILED_MS / 2);
      const tables = await takeProfile(api, file, () => run(PROFILED_MS));
      print(`\n${name}: ${file}\n\n${tables}`);
    } finally {
      await api.stop();
    }
  }
}
