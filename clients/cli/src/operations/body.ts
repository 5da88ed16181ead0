// Bodies of requests: --data as it is, and --field name=value over it.
import * as fs from 'node:fs';
import { usageFailure } from '../failure';
import type { Row } from '../output/print';
import { readStandardInput } from '../output/terminal';
import type { Operation, Value } from './table';

/** @returns undefined where the operation takes no body and none is given */
export async function buildBody(
  operation: Pick<Operation, 'id' | 'body' | 'body_required'>,
  data: string | undefined,
  fields: readonly string[],
): Promise<unknown> {
  const given = data === undefined ? undefined : parseData(await readText(data));
  if (!fields.length && given === undefined) return operation.body_required ? requireNothing(operation) : undefined;
  if (!fields.length) return given;
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given)))
    throw usageFailure('--field needs a body that is an object, and --data is none.');
  const body = (given ?? {}) as Row;
  for (const field of fields) await setField(body, field, operation.body ?? []);
  return body;
}

/** An operation may need a body and nothing in it. */
function requireNothing({ id, body = [] }: Pick<Operation, 'id' | 'body'>): unknown {
  const required = body.filter((one) => one.required).map(({ name }) => name);
  if (!required.length) return {};
  throw usageFailure(
    `${id} needs ${required.map((name) => `\`${name}\``).join(', ')}.`,
    `Example: svc api ${id} ${required.map((name) => `--field ${name}=…`).join(' ')}`,
  );
}

/** Text, `@file`, or `-` for standard input. */
export async function readText(given: string): Promise<string> {
  if (given === '-' || given === '@-') return readStandardInput();
  if (!given.startsWith('@')) return given;
  try {
    return fs.readFileSync(given.slice(1), 'utf8');
  } catch (error) {
    throw usageFailure(`Could not read ${given.slice(1)}: ${(error as Error).message}.`);
  }
}

function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw usageFailure(`--data is no JSON: ${(error as Error).message}.`);
  }
}

/** Sets `name=value`, or `outer.inner=value`. */
async function setField(body: Row, field: string, known: readonly Value[]): Promise<void> {
  const [, path = '', given = ''] = /^([^=]+)=([^]*)$/.exec(field) ?? [];
  if (!path) throw usageFailure(`--field ${field}: expected name=value.`);
  const names = path.split('.');
  const last = names.pop() as string;
  let target = body;
  for (const name of names) {
    if (name === '__proto__') throw usageFailure(`--field ${field}: no such field.`);
    const inner = (target[name] ??= {});
    if (typeof inner !== 'object' || inner === null) throw usageFailure(`--field ${field}: \`${name}\` is no object.`);
    target = inner as Row;
  }
  const text = given.startsWith('@') || given === '-' ? await readText(given) : given;
  target[last] = toValue(text, names.length ? undefined : known.find(({ name }) => name === last), path);
}

/**
 * The value that a text means. Where the type is not known (a field of an object, or of a newer server), JSON where it
 * is JSON.
 */
function toValue(text: string, value: Value | undefined, name: string): unknown {
  if (!value) return guessValue(text);
  if (text === 'null' && value.nullable) return null;
  if (value.type === 'string') return text;
  if (value.type === 'array' && !/^\s*\[/.test(text)) return text === '' ? [] : text.split(',');
  try {
    const parsed = JSON.parse(text) as unknown;
    const isFitting =
      value.type === 'integer'
        ? Number.isInteger(parsed)
        : value.type === 'array'
          ? Array.isArray(parsed)
          : typeof parsed === value.type;
    if (isFitting) return parsed;
  } catch {
    // Said below.
  }
  throw usageFailure(`\`${name}\` must be ${value.type === 'object' ? 'a JSON object' : `of type ${value.type}`}.`);
}

function guessValue(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
