// The catalog of AI models: built-in models, modified by an operator's file.
import { readFileSync } from 'node:fs';
import shipped from './catalog_definitions/ai_models.json';
import { StartupError } from '../startup_error';

const TYPES = ['chat', 'embedding', 'rerank', 'image', 'speech'] as const;
const CAPABILITIES = ['streaming', 'tools', 'vision', 'json'] as const;
const STATUSES = ['available', 'deprecated'] as const;

/** As in the API. Prices are decimal strings in `currency`. */
export interface AiModelRow {
  id: string;
  name: string;
  provider: string;
  type: (typeof TYPES)[number];
  context_tokens: number;
  max_output_tokens: number | null;
  capabilities: (typeof CAPABILITIES)[number][];
  input_price_per_million: string | null;
  output_price_per_million: string | null;
  currency: string;
  status: (typeof STATUSES)[number];
  retires_at: string | null;
}

/** Format of model ids; an inference service may use its own ids. */
export const MODEL_ID = /^[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}$/;

const isText = (value: unknown): boolean => typeof value === 'string' && value.length > 0 && value.length <= 200;
const isCount = (value: unknown): boolean =>
  Number.isInteger(value) && (value as number) > 0 && Number(value) < 2 ** 31;
const orNull = (check: (value: unknown) => boolean) => (value: unknown) => value === null || check(value);
const isPrice = orNull((value) => typeof value === 'string' && /^\d{1,9}(?:\.\d{1,9})?$/.test(value));
const isTime = orNull(
  (value) => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}T.*Z$/.test(value) && !Number.isNaN(Date.parse(value)),
);

const RULES: Record<keyof AiModelRow, (value: unknown) => boolean> = {
  id: (value) => typeof value === 'string' && MODEL_ID.test(value),
  name: isText,
  provider: isText,
  type: (value) => TYPES.some((one) => one === value),
  context_tokens: isCount,
  max_output_tokens: orNull(isCount),
  capabilities: (value) => Array.isArray(value) && value.every((one) => CAPABILITIES.some((known) => known === one)),
  input_price_per_million: isPrice,
  output_price_per_million: isPrice,
  currency: (value) => typeof value === 'string' && /^[A-Z]{3}$/.test(value),
  status: (value) => STATUSES.some((one) => one === value),
  retires_at: isTime,
};

/**
 * The catalog, sorted by id.
 * @param file AI_MODELS_FILE, null for the built-in models only
 * @throws StartupError that describes the error in the file
 */
export function loadAiModels(file: string | null): AiModelRow[] {
  const models = new Map(shippedRows().map((row) => [row.id, row]));
  if (file === null) return sorted(models);
  const { only_listed, models: changes } = readChanges(file);
  const listed = new Map<string, AiModelRow>();
  for (const { hidden, ...change } of changes) {
    const id = String(change.id);
    models.delete(hidden ? id : '');
    if (hidden) continue;
    const row = checkedRow(file, { ...DEFAULTS, ...models.get(id), ...change });
    models.set(id, row);
    listed.set(id, row);
  }
  return sorted(only_listed ? listed : models);
}

const DEFAULTS = {
  max_output_tokens: null,
  capabilities: [],
  input_price_per_million: null,
  output_price_per_million: null,
  currency: 'USD',
  status: 'available',
  retires_at: null,
};

function shippedRows(): AiModelRow[] {
  return shipped.map(({ deprecated, ...row }) => ({
    ...row,
    type: row.type as AiModelRow['type'],
    capabilities: row.capabilities as AiModelRow['capabilities'],
    currency: 'USD',
    status: deprecated ? 'deprecated' : 'available',
    retires_at: null,
  }));
}

interface Changes {
  only_listed: boolean;
  models: (Record<string, unknown> & { hidden?: boolean })[];
}

function readChanges(file: string): Changes {
  let found: Partial<Changes> | null;
  try {
    found = JSON.parse(readFileSync(file, 'utf8')) as Partial<Changes> | null;
  } catch (error) {
    throw new StartupError(`can't read ${file} (AI_MODELS_FILE): ${(error as Error).message}`);
  }
  const models = found?.models;
  if (!Array.isArray(models) || models.some((one) => typeof one !== 'object' || one === null))
    throw new StartupError(`${file} (AI_MODELS_FILE) needs "models", a list of objects`);
  return { only_listed: found?.only_listed === true, models };
}

function checkedRow(file: string, row: Record<string, unknown>): AiModelRow {
  const name = typeof row.id === 'string' ? row.id : '?';
  for (const [field, isValid] of Object.entries(RULES)) {
    if (isValid(row[field])) continue;
    throw new StartupError(`${file} (AI_MODELS_FILE): model ${name}: ${field} is missing or not valid`);
  }
  const unknown = Object.keys(row).find((field) => !(field in RULES));
  if (unknown) throw new StartupError(`${file} (AI_MODELS_FILE): model ${name} has no field ${unknown}`);
  return { ...row, retires_at: row.retires_at && new Date(row.retires_at as string).toISOString() } as AiModelRow;
}

function sorted(models: Map<string, AiModelRow>): AiModelRow[] {
  return [...models.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
