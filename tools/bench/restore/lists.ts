// All lists of the API, as its table of operations has them, with the ids that they name.
import type { Stage } from '../../demo/stage';
import { buildCore } from '../../../resolvers';

/** What goes on by itself, or says what the machine is: not the same a minute later. */
const MOVING = /activity|logs|metrics|results|incidents|instances|runs|backups|usage|errors|catalog|branches|deliver/;
/** Names of what is written all the time, also after the last moment of the backup. */
export const WRITTEN = 'Written ';
const ONE_PARAMETER = /^(\/v2\/\w+)\/\{id\}\/\w+$/;

/** By address, the ids or names of its entries. Lists below a resource are asked for each that the upper list names. */
export async function allLists({ api }: Stage): Promise<Record<string, string[]>> {
  const paths = buildCore()
    .table.operations.filter(({ method, field, path }) => method === 'GET' && field.list && !MOVING.test(path))
    .map(({ path }) => path);
  const found: Record<string, string[]> = {};
  const read = async (address: string): Promise<void> => {
    type Page = { data: Record<string, unknown>[] };
    const page = await api.call<Page>('GET', `${address}?limit=100`).catch(() => null);
    const kept = page?.data.filter(({ name }) => !String(name).startsWith(WRITTEN));
    if (kept) found[address] = kept.map((one) => String(one.id ?? one.key ?? one.name)).sort();
  };
  for (const path of paths.filter((one) => !one.includes('{'))) await read(path);
  for (const path of paths) {
    const [, upper = ''] = ONE_PARAMETER.exec(path) ?? [];
    for (const id of found[upper] ?? []) await read(path.replace('{id}', id));
  }
  return found;
}

/** What the first had and the second has not. */
export function lostEntries(before: Record<string, string[]>, after: Record<string, string[]>): string[] {
  return Object.entries(before).flatMap(([address, ids]) => {
    const lost = ids.filter((id) => !after[address]?.includes(id));
    return lost.length ? [`${address}: ${lost.join(', ')}`] : [];
  });
}
