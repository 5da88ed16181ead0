// The form of ids: <prefix>_<26 characters>, the prefix learned from the example of the kind's own `id` field.
import { isObjectType, type GraphQLObjectType } from 'graphql';
import { kindOfType } from '../../contract/input_types';
import type { Operation } from '../../contract/operations';
import { specOf } from '../../contract/spec';
import type { DocumentBuilder } from './builder';
import { exampleIn, type SchemaWithExample } from './scalar_schemas';
import { responseType } from './response_type';

const ID_PATTERN = /^([a-z]+)_[0-9a-hjkmnp-tv-z]{26}$/;

/** The form of a field `id`, `<kind>_id` or `<kind>_ids` of a type; null where the kind has no id of this form. */
export function idSchema(builder: DocumentBuilder, owner: string, field: string): SchemaWithExample | null {
  if (field === 'id') return idSchemaOfKind(builder, owner);
  const kind = /^(\w+)_ids?$/.exec(field)?.[1];
  if (!kind) return null;
  const name = kind
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
  return idSchemaOfKind(builder, familyOf(owner) + name) ?? idSchemaOfKind(builder, name);
}

/** `user_id` of an attachment of a database is that of a user of the database: relatives come before strangers. */
function familyOf(owner: string): string {
  return /^[A-Z][a-z]+/.exec(kindOfType(owner))?.[0] ?? '';
}

/** The schema of a path parameter: that of the id which operations at that path answer with. */
export function pathIdSchema(builder: DocumentBuilder, operation: Operation, name: string): SchemaWithExample | null {
  const item = pathPattern(operation.path.slice(0, operation.path.indexOf(`{${name}}`) + name.length + 2));
  for (const other of builder.table.operations) {
    const kind = responseType(other);
    const pattern = pathPattern(other.path);
    const names = pattern === item || (other.method === 'POST' && `${pattern}/{}` === item);
    const form = kind && !other.field.list && names ? idSchemaOfType(builder, kind) : null;
    if (form) return form;
  }
  return null;
}

function idSchemaOfKind(builder: DocumentBuilder, name: string): SchemaWithExample | null {
  const type = builder.schema.getType(name);
  return isObjectType(type) ? idSchemaOfType(builder, type) : null;
}

function idSchemaOfType(builder: DocumentBuilder, type: GraphQLObjectType): SchemaWithExample | null {
  const field = type.getFields().id;
  const example = field && exampleIn(specOf(builder.schema, field));
  const prefix = ID_PATTERN.exec(String(example))?.[1];
  return prefix ? { schema: { type: 'string', pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$` }, example } : null;
}

const pathPattern = (path: string): string => path.replace(/\{\w+\}/g, '{}');
