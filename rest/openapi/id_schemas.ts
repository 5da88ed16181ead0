// The schemas of ids, by the form of the kind's own ids (contract/id_forms.ts).
import { idFormOf, idFormOfType, type IdForm } from '../../contract/id_forms';
import type { Operation } from '../../contract/operations';
import type { DocumentBuilder } from './builder';
import { responseType } from './response_type';
import type { SchemaWithExample } from './scalar_schemas';

/** The schema of a field `id`, `<kind>_id` or `<kind>_ids` of a type; null where the kind has no id of this form. */
export function idSchema(builder: DocumentBuilder, owner: string, field: string): SchemaWithExample | null {
  return schemaOf(idFormOf(builder.schema, owner, field));
}

/** The schema of a path parameter: the schema of the id in responses of operations at that path. */
export function pathIdSchema(builder: DocumentBuilder, operation: Operation, name: string): SchemaWithExample | null {
  const item = pathPattern(operation.path.slice(0, operation.path.indexOf(`{${name}}`) + name.length + 2));
  for (const other of builder.table.operations) {
    const kind = responseType(other);
    const pattern = pathPattern(other.path);
    const names = pattern === item || (other.method === 'POST' && `${pattern}/{}` === item);
    const schema = kind && !other.field.list && names ? schemaOf(idFormOfType(builder.schema, kind)) : null;
    if (schema) return schema;
  }
  return null;
}

function schemaOf(form: IdForm | null): SchemaWithExample | null {
  return form && { schema: { type: 'string', pattern: form.pattern }, example: form.example };
}

const pathPattern = (path: string): string => path.replace(/\{\w+\}/g, '{}');
