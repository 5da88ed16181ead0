// What clients of the published API rely on, one line a field, argument or enum value, as docs/contract/fields.tsv has
// it: name, type, and the rules of @spec without documentation.
import { getDirective } from '@graphql-tools/utils';
import {
  isEnumType,
  isInputObjectType,
  isIntrospectionType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLSchema,
} from 'graphql';

interface FieldRow {
  /** `Volume.size_gb`, `Query.listVolumes(limit)`, `TokenKind.personal`, `CreateVolumeInput.name`. */
  name: string;
  /** GraphQL type; `enum` for a value of an enum. */
  type: string;
  /** Bounds and formats as JSON, `-` where there are none. */
  rules: string;
  /** Something that a request may contain: an argument or a field of an input. */
  isInput: boolean;
  /** May be left out of a request. */
  isOptional: boolean;
}

const DOCUMENTATION = new Set(['example', 'default']);

export function fieldRows(schema: GraphQLSchema): FieldRow[] {
  const types = Object.values(schema.getTypeMap()).filter((type) => !isIntrospectionType(type));
  return types.flatMap((type) => rowsOf(schema, type)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function rowsOf(schema: GraphQLSchema, type: GraphQLNamedType): FieldRow[] {
  if (isEnumType(type)) return type.getValues().map(({ name }) => output(`${type.name}.${name}`, 'enum', '-'));
  if (isInputObjectType(type))
    return Object.values(type.getFields()).map((field) => input(schema, `${type.name}.${field.name}`, field));
  if (!isObjectType(type)) return [];
  return Object.values(type.getFields()).flatMap((field) => [
    output(`${type.name}.${field.name}`, String(field.type), rulesOf(schema, field)),
    ...field.args.map((argument) => input(schema, `${type.name}.${field.name}(${argument.name})`, argument)),
  ]);
}

function input(schema: GraphQLSchema, name: string, field: GraphQLArgument | GraphQLInputField): FieldRow {
  const type = String(field.type);
  const isOptional = !type.endsWith('!') || field.defaultValue !== undefined;
  return { name, type, rules: rulesOf(schema, field), isInput: true, isOptional };
}

function output(name: string, type: string, rules: string): FieldRow {
  return { name, type, rules, isInput: false, isOptional: true };
}

function rulesOf(schema: GraphQLSchema, field: Parameters<typeof getDirective>[1]): string {
  const spec = getDirective(schema, field, 'spec')?.[0] ?? {};
  const rules = Object.entries(spec).filter(([name]) => !DOCUMENTATION.has(name));
  return rules.length ? JSON.stringify(Object.fromEntries(rules.sort(([a], [b]) => (a < b ? -1 : 1)))) : '-';
}
