// The kinds. The folder is their list: every class that a file of models/ or of a group's folder exports is a kind.
import { createRequire } from 'node:module';
import path from 'node:path';
import { layerFiles } from '../../core/layer_files';
import { Resource, type ResourceClass } from './resource';

const load = createRequire(__filename);
const MODELS = path.resolve(__dirname, '..');

let kinds: ResourceClass[] | null = null;

/** Every kind, by file name. @throws Error where two kinds share a prefix or a table */
export function allKinds(): ResourceClass[] {
  kinds ??= loadKinds();
  return kinds;
}

/** For groups that refer to kinds of groups above them. @throws Error where there is none */
export function kindNamed(name: string): ResourceClass {
  const found = allKinds().find(({ kind }) => kind === name);
  if (!found) throw new Error(`models: no kind is named ${name}`);
  return found;
}

/** States of each kind that end by themselves, by the name of its GraphQL type: `dns_zone` is `DnsZone`. */
export function transitionalStates(): Map<string, readonly string[]> {
  const named = (kind: string): string => kind.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
  return new Map(
    allKinds().flatMap(({ kind, states }) => (states?.transitional.length ? [[named(kind), states.transitional]] : [])),
  );
}

function loadKinds(): ResourceClass[] {
  const files = layerFiles(MODELS, /^[a-z_]+\.(ts|js)$/);
  const exported = files.flatMap((file) => Object.values(load(file) as Record<string, unknown>));
  const found = [...new Set(exported.filter(isKind))];
  for (const key of ['idPrefix', 'table', 'kind'] as const) {
    if (new Set(found.map((kind) => kind[key])).size < found.length)
      throw new Error(`models: two kinds share a ${key}`);
  }
  return found;
}

function isKind(value: unknown): value is ResourceClass {
  return typeof value === 'function' && value.prototype instanceof Resource && 'table' in value;
}
