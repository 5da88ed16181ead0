// The validator of both faces, compiled from the SDL: types, bounds, formats and rules over several fields.
// All mistakes of a body come together (docs/contract/resources.md §0.4).
import {
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
} from 'graphql';
import type { FieldError } from '../core/errors';
import { directivesOf } from './directives';
import { idFormOf, ownerOfArgument } from './id_forms';
import { kindOfType } from './input_types';
import { listCheck, numberCheck, specOf, stringCheck, type Check, type Spec } from './spec';

export interface Validated {
  value: Record<string, unknown>;
  errors: FieldError[];
}

type FieldCheck = (value: unknown, path: string, errors: FieldError[]) => unknown;
type ObjectCheck = (value: Record<string, unknown>, path: string, errors: FieldError[]) => Record<string, unknown>;

const ROOT_TYPES: Record<string, { is(value: unknown): boolean; word: string }> = {
  Int: { is: (value) => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31, word: 'an integer' },
  ByteCount: { is: (value) => Number.isSafeInteger(value), word: 'an integer' },
  Float: { is: (value) => typeof value === 'number', word: 'a number' },
  Boolean: { is: (value) => typeof value === 'boolean', word: 'true or false' },
};

/**
 * Compiles the check of one input type.
 * @returns a function from a raw JSON object to its normal form (labels trimmed, host names folded) and all its
 * mistakes
 */
export function compileInput(
  schema: GraphQLSchema,
  type: GraphQLInputObjectType,
): (value: Record<string, unknown>) => Validated {
  const check = compileObject(schema, type);
  return (value) => {
    const errors: FieldError[] = [];
    return { value: check(value, '', errors), errors };
  };
}

/**
 * Compiles the check of scalar arguments (path and query); unknown ones were left out before. @param rootField its name
 * @param inPath whose ids name what may not be there
 */
export function compileArguments(
  schema: GraphQLSchema,
  rootField: string,
  args: readonly GraphQLArgument[],
  inPath: ReadonlySet<string>,
): (value: Record<string, unknown>) => Validated {
  const checks = args.map((argument) => {
    const form = inPath.has(argument.name)
      ? null
      : idFormOf(schema, ownerOfArgument(schema, rootField, argument.name), argument.name);
    return [argument.name, compileField(schema, argument, form ? { pattern: form.pattern } : {})] as const;
  });
  return (values) => {
    const errors: FieldError[] = [];
    const value: Record<string, unknown> = {};
    for (const [name, check] of checks) if (name in values) value[name] = check(values[name], name, errors);
    return { value, errors };
  };
}

function compileObject(schema: GraphQLSchema, type: GraphQLInputObjectType): ObjectCheck {
  const fields = Object.values(type.getFields()).map((field) => ({
    name: field.name,
    field,
    // Any other text that names nothing is a reference that is not found.
    check: compileField(schema, field, idFormOf(schema, type.name, field.name) ? { minLength: 1 } : {}),
  }));
  const known = new Set(fields.map((field) => field.name));
  const readOnly = readOnlyFields(schema, type);
  const rules = (directivesOf(schema, type, 'rule') as Rule[]).map(compileRule);
  return (value, path, errors) => {
    const result: Record<string, unknown> = {};
    for (const name of Object.keys(value)) {
      if (known.has(name)) continue;
      if (readOnly.has(name)) errors.push({ field: path + name, code: 'immutable', detail: 'cannot be changed' });
      else errors.push({ field: path + name, code: 'unknown_field', detail: 'is not a field of this body' });
    }
    for (const { name, field, check } of fields) {
      if (Object.hasOwn(value, name)) result[name] = check(value[name], path + name, errors);
      else if (field.defaultValue !== undefined) result[name] = field.defaultValue;
      else if (isNonNullType(field.type)) errors.push({ field: path + name, code: 'required', detail: 'is required' });
    }
    for (const rule of rules) rule(value, path, errors);
    return result;
  };
}

/** Fields of the kind, or of its create input, that this input does not take: they are immutable, not unknown. */
function readOnlyFields(schema: GraphQLSchema, type: GraphQLInputObjectType): Set<string> {
  const kind = kindOfType(type.name);
  const sources = [schema.getType(kind), schema.getType(`Create${kind}Input`), schema.getType(`Add${kind}Input`)];
  const names = sources.flatMap((source) =>
    isObjectType(source) || isInputObjectType(source) ? Object.keys(source.getFields()) : [],
  );
  return new Set(names);
}

function compileField(
  schema: GraphQLSchema,
  field: GraphQLInputField | GraphQLArgument,
  derived: Spec = {},
): FieldCheck {
  const spec = { ...derived, ...specOf(schema, field) };
  const nullable = !isNonNullType(field.type) && !spec.notNull;
  const check = compileType(schema, getNullableType(field.type), spec);
  return (value, path, errors) => {
    if (value !== null) return check(value, path, errors);
    if (spec.page !== undefined) return spec.page;
    if (!nullable) errors.push({ field: path, code: 'required', detail: 'must not be null' });
    return null;
  };
}

function compileType(schema: GraphQLSchema, type: GraphQLInputType, spec: Spec): FieldCheck {
  if (isListType(type)) return compileList(schema, type.ofType as GraphQLInputType, spec);
  if (isInputObjectType(type)) return nestedObject(compileObject(schema, type));
  if (isEnumType(type)) return enumCheck(type.getValues().map((value) => value.name));
  const name = String(type);
  // A page size that is too large for GraphQL's Int is still only too large.
  const root = ROOT_TYPES[spec.page === undefined ? name : 'ByteCount'];
  if (root) return typed(root.is, root.word, numberCheck(spec));
  const merged = name === 'DateTime' ? { format: 'timestamp', ...spec } : spec;
  return typed((value) => typeof value === 'string', 'a string', stringCheck(merged));
}

function typed(is: (value: unknown) => boolean, word: string, check: Check): FieldCheck {
  return (value, path, errors) => {
    if (is(value)) return check(value, (code, detail) => errors.push({ field: path, code, detail }));
    errors.push({ field: path, code: 'invalid_type', detail: `must be ${word}` });
    return value;
  };
}

function enumCheck(names: string[]): FieldCheck {
  return (value, path, errors) => {
    if (typeof value !== 'string') errors.push({ field: path, code: 'invalid_type', detail: 'must be a string' });
    else if (!names.includes(value))
      errors.push({ field: path, code: 'not_in_enum', detail: `must be one of ${names.join(', ')}` });
    return value;
  };
}

function nestedObject(check: ObjectCheck): FieldCheck {
  return (value, path, errors) => {
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return check(value as Record<string, unknown>, `${path}.`, errors);
    errors.push({ field: path, code: 'invalid_type', detail: 'must be an object' });
    return value;
  };
}

// Entry bounds (length, pattern, format, min, max) and list bounds share one @spec.
function compileList(schema: GraphQLSchema, item: GraphQLInputType, spec: Spec): FieldCheck {
  const itemCheck = compileType(schema, getNullableType(item), spec);
  const bounds = listCheck(spec);
  return (value, path, errors) => {
    if (!Array.isArray(value)) {
      errors.push({ field: path, code: 'invalid_type', detail: 'must be a list' });
      return value;
    }
    bounds(value, (code, detail) => errors.push({ field: path, code, detail }));
    if (spec.uniqueBy) reportRepeated(spec.uniqueBy, value, path, errors);
    return value.map((entry, index) => {
      if (entry !== null) return itemCheck(entry, `${path}.${index}`, errors);
      errors.push({ field: `${path}.${index}`, code: 'required', detail: 'must not be null' });
      return null;
    });
  };
}

function reportRepeated(name: string, list: unknown[], path: string, errors: FieldError[]): void {
  const seen = new Set<unknown>();
  list.forEach((entry, index) => {
    const value = (entry as Record<string, unknown> | null)?.[name];
    if (value === undefined) return;
    if (seen.has(value))
      errors.push({ field: `${path}.${index}.${name}`, code: 'duplicate', detail: 'occurs more than once' });
    seen.add(value);
  });
}

interface Rule {
  exactlyOne?: string[];
  atMostOne?: string[];
  notEmpty?: boolean;
  field?: string;
  needs?: string;
  value?: string;
}

type RuleCheck = (value: Record<string, unknown>, path: string, errors: FieldError[]) => void;

function compileRule(rule: Rule): RuleCheck {
  const { exactlyOne, atMostOne, notEmpty, field, needs } = rule;
  if (exactlyOne) return (value, path, errors) => oneOf(exactlyOne, true, value, path, errors);
  if (atMostOne) return (value, path, errors) => oneOf(atMostOne, false, value, path, errors);
  if (notEmpty) return bodyNotEmpty;
  if (field && needs) return (value, path, errors) => dependency(field, needs, rule.value, value, path, errors);
  throw new Error('schema: a @rule without a rule');
}

function oneOf(
  names: string[],
  needed: unknown,
  value: Record<string, unknown>,
  path: string,
  errors: FieldError[],
): void {
  const given = names.filter((name) => value[name] != null);
  if (given.length > 1) {
    for (const name of given)
      errors.push({
        field: path + name,
        code: 'mutually_exclusive',
        detail: `only one of ${names.join(', ')} may be given`,
      });
  }
  if (needed && !given.length)
    errors.push({ field: path + names[0], code: 'required', detail: `one of ${names.join(', ')} is required` });
}

function bodyNotEmpty(value: Record<string, unknown>, path: string, errors: FieldError[]): void {
  if (Object.keys(value).length) return;
  errors.push({ field: path.replace(/\.$/, ''), code: 'required', detail: 'at least one field is required' });
}

function dependency(
  field: string,
  needs: string,
  wanted: string | undefined,
  value: Record<string, unknown>,
  path: string,
  errors: FieldError[],
): void {
  if (value[field] == null) return;
  const other = value[needs];
  if (wanted === undefined ? other != null : other === wanted) return;
  errors.push({
    field: path + field,
    code: 'depends_on',
    detail: wanted === undefined ? `needs ${needs}` : `needs ${needs} to be ${wanted}`,
  });
}
