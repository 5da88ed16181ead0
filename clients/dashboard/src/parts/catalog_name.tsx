// Names of the catalogs in place of their ids, such as `Small, 512 MB` of `s-512mb`. They are asked for once.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { request } from '../api/client';
import { graphql, type ResultOf } from '../api/graphql';
import { memoryText } from './sizes';

const NAMES = graphql(`
  query CatalogNames {
    listApplicationTypes(limit: 100) {
      data {
        id
        name
        memory_mb
      }
    }
    listDatabasePackages(limit: 100) {
      data {
        id
        name
        memory_mb
      }
    }
    listDatabaseEngines(limit: 100) {
      data {
        id
        name
      }
    }
    listRegions(limit: 100) {
      data {
        id
        name
      }
    }
  }
`);

type Names = Readonly<Record<'size' | 'package' | 'engine' | 'region', Readonly<Record<string, string>>>>;

const known = signal<Names | null>(null);
let asked: Promise<void> | null = null;

/** @param of which catalog */
export function CatalogName({ of, id }: { of: keyof Names; id: string }) {
  useEffect(() => void (asked ??= load()), []);
  const name = known.value?.[of][id];
  return name ? <span title={id}>{name}</span> : <>{id}</>;
}

/** Where they cannot be read, ids stay, and the next page asks again. */
async function load(): Promise<void> {
  const answer = await request(NAMES, {}).catch(() => null);
  if (answer) known.value = namesOf(answer);
  else asked = null;
}

function namesOf(answer: ResultOf<typeof NAMES>): Names {
  const { listApplicationTypes: types, listDatabasePackages: packages } = answer;
  const named = (rows: readonly { id: string; name: string }[]): Record<string, string> =>
    Object.fromEntries(rows.map(({ id, name }) => [id, name]));
  const sized = (rows: readonly { id: string; name: string; memory_mb: number }[]): Record<string, string> =>
    named(rows.map(({ id, name, memory_mb }) => ({ id, name: `${name}, ${memoryText(memory_mb)}` })));
  return {
    size: sized(types.data),
    package: sized(packages.data),
    engine: named(answer.listDatabaseEngines.data),
    region: named(answer.listRegions.data),
  };
}
