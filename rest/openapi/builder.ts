// The components of the document under work. A component is made when something first refers to it, so none is unused.
import { getNamedType, isInputObjectType, type GraphQLInputObjectType, type GraphQLSchema } from 'graphql';
import type { OperationTable } from '../../contract/operations';
import { readersOf, type Reader } from '../../contract/readers';
import { canWait, type Transitional } from '../prefer_wait';
import type { Components, Ref } from './document';

export interface DocumentBuilder {
  schema: GraphQLSchema;
  table: OperationTable;
  components: Components;
  /** The operation that reads the answer of another one, by its id. */
  readers: ReadonlyMap<string, Reader>;
  /** Operations whose answer can be held back until the resource has settled. */
  waits: ReadonlySet<string>;
  /** Inputs of which a body of PATCH or PUT consists. */
  updates: ReadonlySet<string>;
  /** Refers to a component, made once. */
  use<Kind extends keyof Components>(kind: Kind, name: string, make: () => Components[Kind][string]): Ref;
}

export function createDocumentBuilder(
  schema: GraphQLSchema,
  table: OperationTable,
  transitional: Transitional,
): DocumentBuilder {
  const components: Components = {
    examples: {},
    schemas: {},
    parameters: {},
    headers: {},
    responses: {},
    securitySchemes: {},
  };
  const begun = new Set<string>();
  const readers = readersOf(table.operations);
  const waits = table.operations.filter((operation) => readers.has(operation.id) && canWait(operation, transitional));
  return {
    schema,
    table,
    readers,
    components,
    waits: new Set(waits.map(({ id }) => id)),
    updates: updateInputs(table),
    use(kind, name, make) {
      const $ref = `#/components/${kind}/${name}`;
      if (begun.has($ref)) return { $ref };
      // Types refer to each other in circles: the name counts as made before its content is.
      begun.add($ref);
      components[kind][name] = make();
      return { $ref };
    },
  };
}

function updateInputs({ operations }: OperationTable): Set<string> {
  const found = new Set<string>();
  const add = (type: GraphQLInputObjectType): void => {
    if (found.has(type.name)) return;
    found.add(type.name);
    for (const field of Object.values(type.getFields())) {
      const inner = getNamedType(field.type);
      if (isInputObjectType(inner)) add(inner);
    }
  };
  for (const { method, field } of operations)
    if ((method === 'PATCH' || method === 'PUT') && field.body) add(field.body.type);
  return found;
}
