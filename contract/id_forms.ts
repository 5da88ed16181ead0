// The form of ids in a field or an argument, derived from the example of the kind's `id` field.
import { getNamedType, GraphQLString, isObjectType, type GraphQLObjectType, type GraphQLSchema } from 'graphql';
import { kindOfType } from './input_types';
import { specOf } from './spec';

export interface IdForm {
  /** `^vol_[0-9a-hjkmnp-tv-z]{26}$` */
  pattern: string;
  example: string;
}

const ID = /^([a-z]+)_[0-9a-hjkmnp-tv-z]{26}$/;

/** The form of a field `id`, `<kind>_id` or `<kind>_ids` of a type; null if the kind has no id of this form. */
export function idFormOf(schema: GraphQLSchema, owner: string, field: string): IdForm | null {
  if (field === 'id') return ofKind(schema, owner);
  const type = schema.getType(owner);
  // An id of elsewhere: access_key_id is AWS's word.
  if (isObjectType(type) && getNamedType(type.getFields()[field]?.type) === GraphQLString) return null;
  const kind = /^(\w+)_ids?$/.exec(field)?.[1];
  if (!kind) return null;
  const name = kind
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
  return ofKind(schema, familyOf(owner) + name) ?? ofKind(schema, name);
}

/** The owner of an argument `<kind>_id`: `CdnZoneMetrics` of `getCdnZoneMetrics`; none where there is no such kind. */
export function ownerOfArgument(schema: GraphQLSchema, rootField: string, argument: string): string {
  return idFormOf(schema, '', argument) ? rootField.replace(/^[a-z]+/, '') : '';
}

/** The form of the ids of a type's rows. */
export function idFormOfType(schema: GraphQLSchema, type: GraphQLObjectType): IdForm | null {
  const { id } = type.getFields();
  const example = id && specOf(schema, id).example;
  const text = example === undefined ? '' : String(JSON.parse(example));
  const prefix = ID.exec(text)?.[1];
  return prefix ? { pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`, example: text } : null;
}

/** Prefix of a related kind: `user_id` of a database attachment means a DatabaseUser, not a User of the platform. */
function familyOf(owner: string): string {
  return /^[A-Z][a-z]+/.exec(kindOfType(owner))?.[0] ?? '';
}

function ofKind(schema: GraphQLSchema, name: string): IdForm | null {
  const type = schema.getType(name);
  return isObjectType(type) ? idFormOfType(schema, type) : null;
}
