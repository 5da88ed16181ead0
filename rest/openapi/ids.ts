// The form of ids: <prefix>_<26 characters>, the prefix learned from the example of the kind's own `id` field.
import { isObjectType, type GraphQLObjectType } from 'graphql';
import type { Operation } from '../../contract/operations';
import { specOf } from '../../contract/spec';
import type { Book } from './book';
import { exampleIn, type Form } from './forms';
import { answerType } from './answer';

const FORM = /^([a-z]+)_[0-9a-hjkmnp-tv-z]{26}$/;

/** The form of a field `id`, `<kind>_id` or `<kind>_ids` of a type; null where the kind has no id of this form. */
export function idForm(book: Book, owner: string, field: string): Form | null {
  if (field === 'id') return formOfKind(book, owner);
  const kind = /^(\w+)_ids?$/.exec(field)?.[1];
  if (!kind) return null;
  const name = kind
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
  return formOfKind(book, familyOf(owner) + name) ?? formOfKind(book, name);
}

/** `user_id` of an attachment of a database is that of a user of the database: relatives come before strangers. */
function familyOf(owner: string): string {
  return /^(?:Create|Update|Add|Set|Move)?([A-Z][a-z]+)/.exec(owner)?.[1] ?? '';
}

/** The form of a path parameter: of the id that operations at that place of the path answer with. */
export function pathIdForm(book: Book, operation: Operation, name: string): Form | null {
  const item = shape(operation.path.slice(0, operation.path.indexOf(`{${name}}`) + name.length + 2));
  for (const other of book.table.operations) {
    const kind = answerType(other);
    const place = shape(other.path);
    const names = place === item || (other.method === 'POST' && `${place}/{}` === item);
    const form = kind && !other.field.list && names ? formOfType(book, kind) : null;
    if (form) return form;
  }
  return null;
}

function formOfKind(book: Book, name: string): Form | null {
  const type = book.schema.getType(name);
  return isObjectType(type) ? formOfType(book, type) : null;
}

function formOfType(book: Book, type: GraphQLObjectType): Form | null {
  const field = type.getFields().id;
  const example = field && exampleIn(specOf(book.schema, field));
  const prefix = FORM.exec(String(example))?.[1];
  return prefix ? { schema: { type: 'string', pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$` }, example } : null;
}

const shape = (path: string): string => path.replace(/\{\w+\}/g, '{}');
