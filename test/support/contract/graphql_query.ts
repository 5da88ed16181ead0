// GraphQL documents made from the schema: any root field with all that REST shows of its answer.
import { getDirective } from '@graphql-tools/utils';
import {
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isUnionType,
  type GraphQLField,
  type GraphQLInputType,
  type GraphQLObjectType,
  type GraphQLOutputType,
} from 'graphql';
import type { RootField } from '../../../contract/operations';
import { core } from '../world';

/** One root field with variables for the given arguments. */
export function document(
  field: RootField,
  given: readonly string[],
  selection = selectionOf(field.definition.type),
): string {
  const args = field.definition.args.filter(({ name }) => given.includes(name));
  const declared = args.map(({ name, type }) => `$${name}: ${type}`).join(', ');
  const passed = args.map(({ name }) => `${name}: $${name}`).join(', ');
  return `${field.kind}${declared && ` (${declared})`} { ${field.name}${passed && `(${passed})`}${selection} }`;
}

/** Everything that REST answers: relations are left out, and so is a type within itself. */
export function selectionOf(type: GraphQLOutputType, above: readonly GraphQLObjectType[] = []): string {
  const bare = getNamedType(type);
  if (isUnionType(bare)) throw new Error(`selection of a union: ${bare.name}`);
  if (!isObjectType(bare)) return '';
  const around = [...above, bare];
  const isWithin = ({ type: inner }: GraphQLField<unknown, unknown>): boolean =>
    around.some((one) => one === getNamedType(inner));
  const fields = Object.values(bare.getFields()).filter((field) => !relationScope(field) && !isWithin(field));
  return ` { ${fields.map((field) => field.name + selectionOf(field.type, around)).join(' ')} }`;
}

/** Scope of a relation, undefined for a plain field. */
function relationScope(field: GraphQLField<unknown, unknown>): string | undefined {
  return getDirective(core.schema, field, 'graphqlOnly')?.[0]?.scope as string | undefined;
}

export interface Relation {
  parent: GraphQLObjectType;
  field: GraphQLField<unknown, unknown>;
  scope: string;
}

/** Every relation of the schema. */
export function relations(): Relation[] {
  const parents = Object.values(core.schema.getTypeMap()).filter(
    (type): type is GraphQLObjectType => isObjectType(type) && !type.name.startsWith('__'),
  );
  return parents.flatMap((parent) =>
    Object.values(parent.getFields()).flatMap((field) => {
      const scope = relationScope(field);
      return scope ? [{ parent, field, scope }] : [];
    }),
  );
}

/** A relation with its required arguments and what REST shows of its rows. */
export function relationSelection({ field }: Relation): string {
  const args = field.args
    .filter(isRequiredArgument)
    .map(({ name }) => `${name}: 5`)
    .join(', ');
  return `${field.name}${args && `(${args})`}${selectionOf(field.type)}`;
}

/** A value that GraphQL lets through and the validator refuses: every text of it holds NUL. */
export function poisoned(type: GraphQLInputType): unknown {
  const bare = getNullableType(type) as GraphQLInputType;
  if (isListType(bare)) return [poisoned(bare.ofType as GraphQLInputType)];
  if (isEnumType(bare)) return bare.getValues()[0]?.name;
  if (isInputObjectType(bare))
    return Object.fromEntries(Object.values(bare.getFields()).map((field) => [field.name, poisoned(field.type)]));
  const name = String(bare);
  if (name === 'Int' || name === 'Float' || name === 'ByteCount') return 1;
  return name === 'Boolean' ? true : '\0';
}
