// The JSON Schema of the file of a project, made of the inputs of the operations that it stands for.
import type { GraphQLSchema } from 'graphql';
import { sectionInput, stackFields } from '../contract/stack/document';
import { STACK_KINDS, type StackKind } from '../contract/stack/kinds';
import type { OperationTable } from '../contract/operations';
import { createDocumentBuilder, type DocumentBuilder } from './openapi/builder';
import type { Schema } from './openapi/document';
import { inputRef } from './openapi/schemas';

/** Where it is served. */
export const STACK_SCHEMA_PATH = '/v2/stack.schema.json';

const VARIABLE = {
  description:
    'The value. `${database.<name>.url}` refers to a database, and `$${` is `${`. ' +
    '`secret: true`: the value is set elsewhere.',
  anyOf: [
    { type: ['string', 'number', 'boolean'] },
    {
      ...{ type: 'object', additionalProperties: false, required: ['value'] },
      properties: {
        value: { type: ['string', 'number', 'boolean'] },
        available_at: { type: 'string', enum: ['build', 'runtime', 'both'] },
      },
    },
    {
      ...{ type: 'object', additionalProperties: false, required: ['secret'] },
      properties: { secret: { type: 'boolean', enum: [true] } },
    },
  ],
};

/** @param baseUrl of this installation, without a slash at its end */
export function stackSchema(
  { schema, table }: { schema: GraphQLSchema; table: OperationTable },
  baseUrl: string,
): object {
  const builder = createDocumentBuilder(schema, table, new Map());
  const tops = STACK_KINDS.filter(({ isChild }) => !isChild);
  const sections = Object.fromEntries(tops.map((kind) => [kind.section, sectionOf(builder, kind)]));
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: `${baseUrl}${STACK_SCHEMA_PATH}`,
    title: 'Stack',
    description: 'A project as a file: platform.yaml.',
    type: 'object',
    additionalProperties: false,
    properties: {
      ...sections,
      project: { description: 'Name or id of the project. Elsewhere the file is refused.', type: 'string' },
      variable_groups: {
        description: 'Variables that applications share, by the name of the group.',
        type: ['object', 'null'],
        additionalProperties: { type: ['object', 'null'], additionalProperties: VARIABLE },
      },
      environments: {
        description: 'Values that replace those above them for one environment: JSON merge patches (RFC 7396).',
        type: 'object',
        additionalProperties: { type: ['object', 'null'] },
      },
    },
    $defs: builder.components.schemas,
  };
  return JSON.parse(JSON.stringify(document).replaceAll('#/components/schemas/', '#/$defs/')) as object;
}

function sectionOf(builder: DocumentBuilder, kind: StackKind): object {
  if (kind.key === null) return entryOf(builder, kind);
  const entry = kind.type === 'environment_variable' ? VARIABLE : entryOf(builder, kind);
  return { type: ['object', 'null'], additionalProperties: entry };
}

/** The input of the operation without the key, and with the sections below an application. */
function entryOf(builder: DocumentBuilder, kind: StackKind): object {
  const type = sectionInput(kind, builder.table.fields);
  inputRef(builder, type);
  const {
    properties = {},
    required = [],
    description,
  } = builder.components.schemas[type.name] as Schema & {
    required?: string[];
  };
  const known = stackFields(kind, builder.table.fields);
  const own = [...known.keys()].map((name) => [name, properties[name] ?? REFERENCE]);
  const below = kind.type === 'application' ? STACK_KINDS.filter(({ isChild, section }) => isChild && section) : [];
  const needed = required.filter((name) => known.has(name));
  return {
    ...{ type: needed.length ? 'object' : ['object', 'null'], description },
    properties: Object.fromEntries([
      ...own,
      ...below.map((one) => [one.section, sectionOf(builder, one)]),
      ...(below.length ? [['variable_groups', GROUP_NAMES]] : []),
    ]),
    ...(needed.length && { required: needed }),
    additionalProperties: false,
  };
}

const GROUP_NAMES = {
  ...{ type: ['array', 'null'], items: { type: 'string' } },
  description: 'Names of `variable_groups`. Later ones win, and `variables` over all.',
};
const REFERENCE = { type: ['string', 'null'], description: 'Name of an application.' };
