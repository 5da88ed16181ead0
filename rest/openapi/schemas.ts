// Components of the GraphQL types as REST shows them: without relations, nullable as a type array, inputs closed.
import {
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  type GraphQLArgument,
  type GraphQLEnumType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLObjectType,
  type GraphQLType,
} from 'graphql';
import { hasDirective } from '../../contract/directives';
import { specOf, type Spec } from '../../contract/spec';
import type { DocumentBuilder } from './builder';
import type { Schema } from './document';
import { leafExample } from './examples';
import { exampleIn, withoutUndefined, leafBounds, listBounds, scalarSchema } from './scalar_schemas';
import { idSchema } from './id_schemas';
import { describeRules, isNotEmpty } from './rules';

export type Node = GraphQLField<unknown, unknown> | GraphQLInputField | GraphQLArgument;

/** The schema of an answer's body. */
export function answerSchema(builder: DocumentBuilder, type: GraphQLType): Schema {
  return typeSchema(builder, getNullableType(type) as GraphQLType, {}, null);
}

/** The schema of a parameter, which can't be null: bounds, default. */
export function parameterSchema(builder: DocumentBuilder, owner: string, node: Node): Schema {
  const spec = specOf(builder.schema, node);
  const base = baseSchema(builder, owner, node, spec);
  return withoutUndefined({ ...base, default: readDefault(node, spec, base).fallback ?? base.default });
}

/** The schema of a field: bounds, description, default, example. */
function memberSchema(builder: DocumentBuilder, owner: string, node: Node): Schema {
  const spec = specOf(builder.schema, node);
  const nullable = !isNonNullType(node.type) && !spec.notNull;
  const base = baseSchema(builder, owner, node, spec);
  const { fallback, note } = readDefault(node, spec, base);
  // Generated clients send a `default` with every body. In an update, what is left out keeps its value.
  const isUpdate = fallback !== undefined && builder.updates.has(owner);
  const remark = isUpdate ? `Default: \`${JSON.stringify(fallback)}\`.` : note;
  const example = exampleIn(spec) ?? (isObvious(base) ? undefined : exampleOf(builder, owner, node, fallback));
  return withoutUndefined({
    ...(nullable ? orNull(base) : base),
    description: [node.description, remark].filter(Boolean).join(' ') || undefined,
    default: isUpdate ? undefined : (fallback ?? base.default),
    examples: example === undefined ? undefined : [example],
    deprecated: node.deprecationReason ? true : undefined,
  });
}

/** The default is an example too, unless it is empty. */
function exampleOf(builder: DocumentBuilder, owner: string, node: Node, fallback: unknown): unknown {
  const isShown = fallback !== undefined && fallback !== '' && !Array.isArray(fallback);
  return isShown ? fallback : leafExample(builder, owner, node);
}

/** The component of an input type. */
export function inputRef(builder: DocumentBuilder, type: GraphQLInputObjectType): Schema {
  return builder.use('schemas', type.name, () => {
    const fields = Object.values(type.getFields());
    const required = fields.filter((field) => isNonNullType(field.type) && field.defaultValue === undefined);
    return withoutUndefined({
      type: 'object',
      description: [type.description, ...describeRules(builder, type)].filter(Boolean).join(' ') || undefined,
      properties: propertiesOf(builder, type),
      required: required.length ? required.map((field) => field.name) : undefined,
      minProperties: isNotEmpty(builder, type) ? 1 : undefined,
      additionalProperties: false as const,
    });
  });
}

function baseSchema(builder: DocumentBuilder, owner: string, node: Node, spec: Spec): Schema {
  return typeSchema(
    builder,
    getNullableType(node.type) as GraphQLType,
    spec,
    idSchema(builder, owner, node.name)?.schema ?? null,
  );
}

function typeSchema(builder: DocumentBuilder, type: GraphQLType, spec: Spec, id: Schema | null): Schema {
  if (isListType(type)) {
    const items = typeSchema(builder, getNullableType(type.ofType) as GraphQLType, spec, id);
    return { type: 'array', items: isNonNullType(type.ofType) ? items : orNull(items), ...listBounds(spec) };
  }
  if (isObjectType(type)) return outputRef(builder, type);
  if (isInputObjectType(type)) return inputRef(builder, type);
  if (isEnumType(type)) return enumRef(builder, type);
  return { ...scalarSchema(builder, String(type)).schema, ...id, ...leafBounds(spec) };
}

function outputRef(builder: DocumentBuilder, type: GraphQLObjectType): Schema {
  return builder.use('schemas', type.name, () => {
    const properties = propertiesOf(builder, type);
    return withoutUndefined({
      type: 'object',
      description: type.description ?? undefined,
      properties,
      required: Object.keys(properties),
    });
  });
}

function propertiesOf(
  builder: DocumentBuilder,
  type: GraphQLObjectType | GraphQLInputObjectType,
): Record<string, Schema> {
  return Object.fromEntries(
    shownFields(builder, type).map((field) => [field.name, memberSchema(builder, type.name, field)]),
  );
}

/** Fields of a type as REST has them. */
export function shownFields(builder: DocumentBuilder, type: GraphQLObjectType | GraphQLInputObjectType): Node[] {
  const fields: Node[] = Object.values(type.getFields());
  return fields.filter((field) => !hasDirective(field, 'graphqlOnly'));
}

function enumRef(builder: DocumentBuilder, type: GraphQLEnumType): Schema {
  return builder.use('schemas', type.name, () => {
    const values = type.getValues();
    const lines = values
      .filter((value) => value.description)
      .map((value) => `* \`${value.name}\`: ${value.description}`);
    const description = [type.description, lines.join('\n')].filter(Boolean).join('\n\n');
    return withoutUndefined({
      type: 'string',
      description: description || undefined,
      enum: values.map((value) => value.name),
    });
  });
}

// An enum or a boolean shows its values by itself.
function isObvious(base: Schema): boolean {
  return base.$ref !== undefined || base.type === 'boolean' || base.items?.$ref !== undefined;
}

function orNull(schema: Schema): Schema {
  if (schema.$ref) return { anyOf: [schema, { type: 'null' }] };
  return { ...schema, type: [schema.type as string, 'null'] };
}

/** A default of the SDL, or the one that @spec documents: a value where it is one, else a sentence. */
function readDefault(node: Node, spec: Spec, base: Schema): { fallback?: unknown; note?: string } {
  if ('defaultValue' in node && node.defaultValue !== undefined) return { fallback: node.defaultValue };
  if (spec.default === undefined) return {};
  const value = parsed(spec.default);
  if (isValueOf(value, base)) return { fallback: value };
  if (base.type === 'string' && /^\S+$/.test(spec.default)) return { fallback: spec.default };
  return { note: `Default: ${spec.default.replace(/\.$/, '')}.` };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function isValueOf(value: unknown, { type, enum: values, $ref }: Schema): boolean {
  if (value === undefined || $ref) return $ref !== undefined && typeof value === 'string';
  if (values) return values.includes(value as string);
  if (Array.isArray(value)) return type === 'array';
  if (typeof value === 'number') return type === 'integer' || type === 'number';
  return typeof value === type;
}
