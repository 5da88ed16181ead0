// Extensions of an installed PostgreSQL, by their control files (https://www.postgresql.org/docs/current/extend-
// extensions.html): `name = 'value'`, with comments after `#`.
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { ExtensionFound } from '../core/catalog/host_facts';

const SUFFIX = '.control';

/** By name. `bin` is the directory of the programs of the server, `series` its major version. */
export async function installedExtensions(bin: string, series: string): Promise<ExtensionFound[]> {
  const home = path.dirname(bin);
  const places = [`${home}/share/postgresql`, `${home}/share`, `/usr/share/postgresql/${series}`];
  for (const place of places) {
    const directory = path.join(place, 'extension');
    const files = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(SUFFIX)).sort();
    if (files.length) return (await Promise.all(files.map((name) => read(path.join(directory, name))))).flat();
  }
  return [];
}

async function read(file: string): Promise<ExtensionFound[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const fields = new Map<string, string>();
  for (const [, name, quoted, plain] of text.matchAll(/^\s*(\w+)\s*=?\s*(?:'((?:[^']|'')*)'|([^\s#']+))/gm))
    fields.set((name as string).toLowerCase(), quoted?.replaceAll("''", "'") ?? (plain as string));
  const version = fields.get('default_version');
  if (version === undefined) return [];
  const requires = (fields.get('requires') ?? '').split(',').map((name) => name.trim().replaceAll('"', ''));
  return [
    {
      ...{ name: path.basename(file, SUFFIX), version, description: fields.get('comment') ?? '' },
      requires: requires.filter(Boolean),
      is_trusted: fields.get('trusted') === 'true' || fields.get('superuser') === 'false',
    },
  ];
}
