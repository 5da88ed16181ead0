// Answers that hold a secret (`@secret`): the operations that give them need the scope `env:read`
// (docs/decisions/rules.md §39).
import { getNamedType, isObjectType, type GraphQLField, type GraphQLNamedType, type GraphQLSchema } from 'graphql';
import { directiveOf, hasDirective } from './directives';
import type { RootField } from './operations';

interface SecretMark {
  answeredBy?: string[];
  sentTo: string[];
}

/** A field of an answer that holds a secret, `DatabaseUser.password`. */
interface SecretField {
  name: string;
  mark: SecretMark;
}

/** Secret fields in responses of a type. Relations are left out: they declare a separate scope. */
export function secretsOf(schema: GraphQLSchema, type: GraphQLNamedType, seen = new Set<string>()): SecretField[] {
  if (!isObjectType(type) || seen.has(type.name)) return [];
  seen.add(type.name);
  return Object.values(type.getFields()).flatMap((field) => {
    const mark = secretMarkOf(schema, field);
    if (mark) return [{ name: `${type.name}.${field.name}`, mark }];
    return hasDirective(field, 'graphqlOnly') ? [] : secretsOf(schema, getNamedType(field.type), seen);
  });
}

/** The first secret that a root field answers without the scope that it needs; null if there is none. */
export function unguardedSecret(schema: GraphQLSchema, field: RootField): string | null {
  if (field.session || [field.scope, ...field.alsoScopes].includes('env:read')) return null;
  const found = secretsOf(schema, getNamedType(field.definition.type)).find(
    ({ mark }) => !mark.sentTo.includes(field.name) && (mark.answeredBy?.includes(field.name) ?? true),
  );
  return found?.name ?? null;
}

function secretMarkOf(schema: GraphQLSchema, field: GraphQLField<unknown, unknown>): SecretMark | null {
  return (directiveOf(schema, field, 'secret') as SecretMark | undefined) ?? null;
}
