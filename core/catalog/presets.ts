// The catalog of presets: built-in ones, and images of the operator.
import { readFileSync } from 'node:fs';
import { defaultApplicationType, presetDefinitions, type PresetDefinition } from './catalogs';
import { formats } from '../formats/formats';
import { StartupError } from '../startup_error';

const TEXT_MAX = 500;
const ENTRIES_MAX = 50;
const INSTANCES_MAX = 100;

type Entry = Record<string, unknown>;

const known = new Map<string, readonly PresetDefinition[]>();

/**
 * Read once: changes apply at the next start.
 * @param file PRESETS_FILE, null where the operator adds nothing
 * @throws StartupError that describes the error in the file
 */
export function presetsWith(file: string | null): readonly PresetDefinition[] {
  if (file === null) return presetDefinitions;
  const presets = known.get(file) ?? readPresets(file);
  known.set(file, presets);
  return presets;
}

function readPresets(file: string): PresetDefinition[] {
  const { presets, only_listed } = parseFile(file);
  const own = presets.map((entry) => presetOf(entry, file));
  const shipped = only_listed === true ? [] : presetDefinitions;
  const all = [...shipped.filter(({ id }) => !own.some((one) => one.id === id)), ...own];
  const twice = own.find(({ id }, position) => own.findIndex((one) => one.id === id) !== position);
  if (twice) throw new StartupError(`${file} (PRESETS_FILE): there are two presets ${twice.id}`);
  return all;
}

function parseFile(file: string): { presets: Entry[]; only_listed?: unknown } {
  let found: { presets?: unknown; only_listed?: unknown } | null;
  try {
    found = JSON.parse(readFileSync(file, 'utf8')) as typeof found;
  } catch (error) {
    throw new StartupError(`can't read ${file} (PRESETS_FILE): ${(error as Error).message}`);
  }
  if (isList(found?.presets, isEntry)) return { presets: found.presets, only_listed: found.only_listed };
  throw new StartupError(`${file} (PRESETS_FILE) needs "presets", a list of objects`);
}

type Rule = (value: unknown) => boolean;

const isText: Rule = (value) => typeof value === 'string' && value.length > 0 && value.length <= TEXT_MAX;
const isSlug: Rule = (value) => typeof value === 'string' && formats.slug(value) !== null;
const isImage: Rule = (value) => typeof value === 'string' && formats.oci_reference(value) !== null;
const optional = (rule: Rule) => (value: unknown) => value === undefined || value === null || rule(value);

const RULES: Record<string, Rule> = {
  id: isSlug,
  name: isText,
  description: isText,
  category: isSlug,
  image: isImage,
  application_type: optional(isText),
  requires_engine: optional(isText),
  processes: optional((value) => isList(value, isProcess)),
  variables: optional((value) => isList(value, isVariable)),
};

function presetOf(entry: Entry, file: string): PresetDefinition {
  const where = `${file} (PRESETS_FILE): preset ${typeof entry.id === 'string' ? entry.id : '?'}`;
  const wrong = Object.keys(RULES).find((field) => !RULES[field]?.(entry[field]));
  if (wrong) throw new StartupError(`${where}: ${wrong} is missing or not valid`);
  const unknown = Object.keys(entry).find((field) => !(field in RULES));
  if (unknown) throw new StartupError(`${where} has no field ${unknown}`);
  const { application_type, requires_engine, processes, variables, ...rest } = entry as Entry & PresetDefinition;
  return {
    ...rest,
    template: null,
    application_type: application_type ?? defaultApplicationType,
    needs: { programs: ['bubblewrap'], ...(requires_engine ? { engine: String(requires_engine) } : {}) },
    processes: (processes ?? []).map(({ type, command, instances }) => ({
      type,
      command: command ?? null,
      instances: instances ?? 1,
    })),
    variables: (variables ?? []).map((one) => ({
      ...one,
      default: one.default ?? null,
      required: one.required ?? false,
    })),
  };
}

function isProcess({ type, command, instances, ...rest }: Entry): boolean {
  const isCount = Number.isInteger(instances) && Number(instances) >= 0 && Number(instances) <= INSTANCES_MAX;
  return (
    isSlug(type) && optional(isText)(command) && (instances === undefined || isCount) && Object.keys(rest).length === 0
  );
}

function isVariable({ key, description, default: value, required, ...rest }: Entry): boolean {
  return (
    typeof key === 'string' &&
    formats.env_key(key) !== null &&
    isText(description) &&
    optional((one) => typeof one === 'string')(value) &&
    optional((one) => typeof one === 'boolean')(required) &&
    Object.keys(rest).length === 0
  );
}

function isEntry(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: unknown, rule: (entry: Entry) => boolean): value is Entry[] {
  return Array.isArray(value) && value.length <= ENTRIES_MAX && value.every((one) => isEntry(one) && rule(one));
}
