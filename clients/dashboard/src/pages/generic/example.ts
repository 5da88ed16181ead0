// A body that an operation takes, of the examples of its fields.
import type { Row } from '../../api/resources/query';
import type { Operation, ResourceTable, Value } from '../../api/resources/table';

/** What the API asks for, and neither the types nor the rules of the schema say. */
const ASKED_FOR: Record<string, readonly string[]> = { CreateGitIntegrationInput: ['access_token'] };

/** What has to be given, and what the rules of the input ask for beside it. Ids and secrets are left open: `vol_…`. */
export function exampleBody(table: ResourceTable, { args, body }: Operation): Row {
  const type = args.find(({ name }) => name === body)?.type;
  return type === undefined ? {} : exampleInput(table, type);
}

function exampleInput(table: ResourceTable, type: string): Row {
  const { fields = [], rules = [] } = table.inputs[type] ?? {};
  const required = fields.filter((field) => field.required || ASKED_FOR[type]?.includes(field.name));
  const values = valuesOf(table, required);
  // Rules are sentences, which the build makes of `@rule` (resource_types.mjs). What a type needs is named like it.
  const oneOf = rules.map((rule) => /^Exactly one of `(\w+)`/.exec(rule)?.[1]);
  return {
    ...values,
    ...valuesOf(
      table,
      fields.filter(({ name }) => name === values.type || oneOf.includes(name)),
    ),
  };
}

function valuesOf(table: ResourceTable, fields: readonly Value[]): Row {
  return Object.fromEntries(fields.map((field) => [field.name, exampleValue(table, field)]));
}

function exampleValue(table: ResourceTable, field: Value): unknown {
  const { example, kind, type } = field;
  if (example !== undefined) return type === 'ID' ? withoutIds(example) : example;
  if (kind === 'enum') return table.enums[type]?.[0]?.value;
  return kind === 'input' ? exampleInput(table, type) : '…';
}

/** Nobody has the ids of examples. */
function withoutIds(example: unknown): unknown {
  return JSON.parse(JSON.stringify(example).replace(/(\b[a-z]+_)[0-9a-z]{10,}/g, '$1…')) as unknown;
}
