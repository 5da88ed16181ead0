// Examples: of @spec where it gives one, else of the default, the id, the format, the type.
// A request body's example has the fields that a client would send: required ones, and optional ones with an example.
import {
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  type GraphQLInputObjectType,
  type GraphQLNamedType,
  type GraphQLType,
} from 'graphql';
import { specOf } from '../../contract/spec';
import type { DocumentBuilder } from './builder';
import { exampleIn, formatSchema, scalarSchema } from './scalar_schemas';
import { idSchema } from './id_schemas';
import { rulesOf, type Rule } from './rules';
import type { Node } from './schemas';

type Values = Record<string, unknown>;

/** The example of a scalar, an enum or a list of them; undefined for objects, which have it in their fields. */
export function leafExample(builder: DocumentBuilder, owner: string, node: Node): unknown {
  const spec = specOf(builder.schema, node);
  const own = exampleIn(spec);
  if (own !== undefined) return own;
  if ('defaultValue' in node && node.defaultValue !== undefined) return node.defaultValue;
  if (spec.page !== undefined) return spec.page;
  if (spec.sorts) return spec.sorts[0];
  const derived = derive(builder, owner, node);
  return isListOf(node.type) && derived !== undefined ? [derived] : derived;
}

/** The example of a request body. */
export function bodyExample(builder: DocumentBuilder, type: GraphQLInputObjectType): Values {
  const rules = rulesOf(builder, type);
  const values: Values = {};
  for (const field of Object.values(type.getFields())) {
    const wanted =
      (isNonNullType(field.type) && field.defaultValue === undefined) ||
      exampleIn(specOf(builder.schema, field)) !== undefined;
    if (wanted) values[field.name] = inputExample(builder, type.name, field);
  }
  fillChoices(builder, type, rules, values);
  for (const rule of rules) dropExcess(rule, values);
  return values;
}

// If one of several fields is required, fills the first; in an update without examples, the first that can be derived.
function fillChoices(builder: DocumentBuilder, type: GraphQLInputObjectType, rules: Rule[], values: Values): void {
  for (const rule of rules) {
    const names = rule.exactlyOne ?? (rule.notEmpty ? Object.keys(type.getFields()) : []);
    if (!names.length || names.some((name) => name in values)) continue;
    const name = names.find(
      (candidate) => inputExample(builder, type.name, type.getFields()[candidate] as Node) !== undefined,
    );
    if (name) values[name] = inputExample(builder, type.name, type.getFields()[name] as Node);
  }
}

function dropExcess(rule: Rule, values: Values): void {
  const single = (rule.exactlyOne ?? rule.atMostOne ?? []).filter((name) => name in values);
  for (const name of single.slice(1)) delete values[name];
  if (!rule.field || !rule.needs || !(rule.field in values)) return;
  const needed = values[rule.needs];
  if (needed == null || (rule.value !== undefined && needed !== rule.value)) delete values[rule.field];
}

function inputExample(builder: DocumentBuilder, owner: string, node: Node): unknown {
  const own = exampleIn(specOf(builder.schema, node));
  if (own !== undefined) return own;
  const inner = innermost(node.type);
  if (!isInputObjectType(inner)) return leafExample(builder, owner, node);
  const example = bodyExample(builder, inner);
  return isListOf(node.type) ? [example] : example;
}

function derive(builder: DocumentBuilder, owner: string, node: Node): unknown {
  const spec = specOf(builder.schema, node);
  const inner = innermost(node.type);
  if (isObjectType(inner) || isInputObjectType(inner)) return undefined;
  if (isEnumType(inner)) return inner.getValues()[0]?.name;
  if (spec.format) return formatSchema(spec.format).example;
  const { schema, example } = idSchema(builder, owner, node.name) ?? scalarSchema(builder, inner.name);
  if (schema.type === 'integer' || schema.type === 'number')
    return Math.min(Math.max(spec.min ?? (example as number), example as number), spec.max ?? Infinity);
  return spec.pattern || (spec.minLength ?? 0) > 4 || (inner.name === 'String' && !isRequiredInput(node))
    ? undefined
    : example;
}

// In responses the placeholder "text" is useless; the example of a request body must contain required fields.
function isRequiredInput(node: Node): boolean {
  return isNonNullType(node.type) && !('args' in node);
}

export function isListOf(type: GraphQLType): boolean {
  return isListType(getNullableType(type));
}

export function innermost(type: GraphQLType): GraphQLNamedType {
  const bare = getNullableType(type) as GraphQLType;
  return isListType(bare) ? innermost(bare.ofType as GraphQLType) : (bare as GraphQLNamedType);
}
